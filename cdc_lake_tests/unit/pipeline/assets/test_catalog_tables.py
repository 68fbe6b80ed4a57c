"""A partitioned table in the catalog: partitions of new commits are added without a look at the whole table."""

from __future__ import annotations

import json

import pytest

from cdc_lake.contract.table import timeline
from cdc_lake.pipeline.assets.catalog_tables import register
from cdc_lake_tests.fake_pipeline import World

COLUMNS = [("customer_id", "string"), ("country", "string"), ("__deleted", "boolean")]


def commit(shop: World, instant: str, *countries: str) -> None:
    """The customers' table has one more commit, which wrote to these partitions."""
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


def registered(shop: World) -> tuple[bool, int]:
    """A registration: whether it changed anything, and how many of the store's requests it made."""
    shop.bucket.forget_requests()
    uri = f"s3://shop/{shop.customers.lake_prefix}"
    changed = register(shop.customers, COLUMNS, shop.glue, shop.athena, shop.bucket, uri)
    return changed, shop.bucket.total


def partitions(shop: World) -> set[str]:
    """The partitions that the catalog has."""
    return {each.removeprefix("country=") for each in shop.glue._partitions["shop_lake.customers"]}


def test_the_first_time_all_are_listed_and_then_those_of_new_commits(shop: World) -> None:
    commit(shop, "20260001", "PL", "DE")
    assert registered(shop)[0]
    assert partitions(shop) == {"PL", "DE"}
    assert registered(shop) == (False, 1), "the timeline is listed, and nothing is read"
    commit(shop, "20260002", "PL", "FR")
    assert registered(shop) == (True, 2), "the timeline, and the commit that is new"
    assert partitions(shop) == {"PL", "DE", "FR"}
    assert registered(shop) == (False, 1)


def test_the_cost_does_not_grow_with_the_table(shop: World) -> None:
    commit(shop, "20260001", *(f"C{number}" for number in range(1500)))
    registered(shop)
    commit(shop, "20260002", "C1", "XX")
    assert registered(shop) == (True, 2)
    assert len(partitions(shop)) == 1501


def test_what_is_archived_since_is_found_by_listing(shop: World) -> None:
    commit(shop, "20260001", "PL")
    registered(shop)
    commit(shop, "20260002", "FR")
    commit(shop, "20260003", "IT")
    hoodie = f"{shop.customers.lake_prefix}.hoodie/"
    shop.bucket.delete([f"{hoodie}20260001.commit", f"{hoodie}20260002.commit"])
    assert registered(shop)[0]
    assert partitions(shop) == {"PL", "FR", "IT"}


def test_a_catalog_that_was_lost_gets_all_of_them_again(shop: World) -> None:
    commit(shop, "20260001", "PL")
    registered(shop)
    commit(shop, "20260002", "FR")
    registered(shop)
    shop.glue.delete_table("shop_lake", "customers")
    shop.glue._partitions.clear()
    assert registered(shop)[0]
    assert partitions(shop) == {"PL", "FR"}


@pytest.mark.parametrize("body", [b"{", b"[]", b"{}"])
def test_a_commit_that_cannot_be_read_is_not_passed_over(shop: World, body: bytes) -> None:
    commit(shop, "20260001", "PL")
    registered(shop)
    shop.bucket.write(f"{shop.customers.lake_prefix}.hoodie/20260002.commit", body)
    with pytest.raises(Exception, match="is not one of table version 6, or damaged"):
        registered(shop)
