"""Partitions of new commits are registered in the catalog without listing the whole table."""

from __future__ import annotations

import json

import pytest

from cdc_lake.contract.table import timeline
from cdc_lake.pipeline.assets.catalog_tables import register
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop

COLUMNS = [("customer_id", "string"), ("country", "string"), ("__deleted", "boolean")]


def commit(shop: Shop, instant: str, *countries: str) -> None:
    """Add a commit to the customers' table that wrote to these partitions."""
    prefix = shop.customers.lake_prefix
    checkpoint = timeline.Checkpoint(topic="t", topic_id="id-1", manifest=1, schema_version=1)
    stat = {"numWrites": 1, "numInserts": 1, "numUpdateWrites": 0, "totalWriteBytes": 9}
    body = {
        "partitionToWriteStats": {f"country={country}": [stat] for country in countries},
        "extraMetadata": {timeline.CHECKPOINT_KEY: checkpoint.model_dump_json()},
    }
    shop.bucket.write(f"{prefix}.hoodie/{instant}.commit", json.dumps(body).encode())
    for country in countries:
        shop.bucket.write(f"{prefix}country={country}/.hoodie_partition_metadata", b"")
        shop.bucket.write(f"{prefix}country={country}/{instant}.parquet", b"rows")


def registered(shop: Shop) -> tuple[bool, int]:
    """Register the table; return whether anything changed, and the number of store requests."""
    newest = timeline.last_commit(shop.bucket, shop.customers.lake_prefix)
    shop.bucket.forget_requests()
    uri = f"s3://shop/{shop.customers.lake_prefix}"
    changed = register(shop.customers, COLUMNS, shop.glue, shop.athena, shop.bucket, uri, newest)
    return changed, shop.bucket.total


def partitions(shop: Shop) -> set[str]:
    """Return the partitions in the catalog."""
    return {each.removeprefix("country=") for each in shop.glue._partitions["shop_lake.customers"]}


def test_the_first_registration_lists_all_partitions_and_later_ones_read_new_commits(shop: Shop) -> None:
    commit(shop, "20260001", "PL", "DE")
    assert registered(shop)[0]
    assert partitions(shop) == {"PL", "DE"}
    assert registered(shop) == (False, 0)
    commit(shop, "20260002", "PL", "FR")
    assert registered(shop) == (True, 2), "the timeline and the new commit are read"
    assert partitions(shop) == {"PL", "DE", "FR"}
    assert registered(shop) == (False, 0)


def test_the_number_of_requests_does_not_grow_with_the_table(shop: Shop) -> None:
    commit(shop, "20260001", *(f"C{number}" for number in range(1500)))
    registered(shop)
    commit(shop, "20260002", "C1", "XX")
    assert registered(shop) == (True, 2)
    assert len(partitions(shop)) == 1501


def test_partitions_of_archived_commits_are_found_by_listing(shop: Shop) -> None:
    commit(shop, "20260001", "PL")
    registered(shop)
    commit(shop, "20260002", "FR")
    commit(shop, "20260003", "IT")
    hoodie = f"{shop.customers.lake_prefix}.hoodie/"
    shop.bucket.delete([f"{hoodie}20260001.commit", f"{hoodie}20260002.commit"])
    assert registered(shop)[0]
    assert partitions(shop) == {"PL", "FR", "IT"}


def test_a_lost_catalog_table_gets_all_partitions_again(shop: Shop) -> None:
    commit(shop, "20260001", "PL")
    registered(shop)
    commit(shop, "20260002", "FR")
    registered(shop)
    shop.glue.delete_table("shop_lake", "customers")
    shop.glue._partitions.clear()
    assert registered(shop)[0]
    assert partitions(shop) == {"PL", "FR"}


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}"])
def test_an_unreadable_commit_fails_the_registration(shop: Shop, body: bytes) -> None:
    commit(shop, "20260001", "PL")
    registered(shop)
    shop.bucket.write(f"{shop.customers.lake_prefix}.hoodie/20260002.commit", body)
    with pytest.raises(Exception, match="is damaged or not in the format of table version 6"):
        registered(shop)
