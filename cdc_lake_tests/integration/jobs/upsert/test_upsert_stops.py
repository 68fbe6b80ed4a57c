"""Errors that stop an upsert before it changes anything, and an upsert without new manifests."""

from __future__ import annotations

from typing import cast

import pytest
from pyspark.sql import SparkSession

from cdc_lake.contract.errors import LeaseHeldError, ManifestGapError, ObjectDamagedError, TopicRecreatedError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.table import lease, timeline
from cdc_lake.jobs.apply import upsert
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.integration.jobs.no_spark import NoSpark


@pytest.fixture
def table(new_table: NewTable) -> LakeTable:
    return new_table(COLUMNS, KEY)


def commits(table: LakeTable) -> object:
    """Return the table's last commit."""
    return timeline.last_commit(table.store, table.spec.prefix)


@pytest.mark.parametrize("body", [None, b"", b'{"id": 1}\n'], ids=["missing", "emptied", "changed"])
def test_a_damaged_raw_object_stops_the_upsert(table: LakeTable, body: bytes | None) -> None:
    table.deliver([event(1, "c", 100)])
    key = table.objects[0].key
    if body is None:
        table.store.delete([key])
    else:
        table.store.client.put_object(Bucket=table.engines.location.bucket, Key=key, Body=body)
    with pytest.raises(ObjectDamagedError) as caught:
        table.upsert()
    assert caught.value.user_message.startswith(f"Cannot read raw object {key}: ")
    assert f"or run `cdc-lake reset {table.name}` (it deletes" in caught.value.user_message
    assert commits(table) is None


def test_a_table_leased_by_another_writer_is_not_changed(table: LakeTable) -> None:
    table.deliver([event(1, "c", 100)])
    with (
        lease.held(table.store, object_names.lease_key(table.name, "orders"), "another writer"),
        pytest.raises(LeaseHeldError, match="another writer holds"),
    ):
        table.upsert()
    assert commits(table) is None
    assert table.upsert().commit.inserts == 1
    assert_an_upsert_without_new_manifests_uses_no_spark(table)
    assert_a_replaced_manifest_is_reported(table)
    assert_a_recreated_topic_is_reported(table)


def assert_an_upsert_without_new_manifests_uses_no_spark(table: LakeTable) -> None:
    before = commits(table)
    report = upsert.run(cast(SparkSession, NoSpark()), table.spec)
    assert (report.commit, report.events) == (None, 0)
    assert report.seconds < 1
    assert commits(table) == before


def assert_a_replaced_manifest_is_reported(table: LakeTable) -> None:
    """As if manifests had been removed, and others landed in their place."""
    before, key = table.chain.read(1), object_names.manifest_key(table.name, table.spec.topic, 1)
    bucket = table.engines.location.bucket
    for attempt in ("another", before.attempt):
        body = before.model_copy(update={"attempt": attempt}).encode()
        table.store.client.put_object(Bucket=bucket, Key=key, Body=body)
        if attempt == "another":
            with pytest.raises(ManifestGapError, match=r"manifest 1 .* was applied .* contains attempt another"):
                table.upsert()


def assert_a_recreated_topic_is_reported(table: LakeTable) -> None:
    """As if the raw objects had been removed without the table, and another topic of that name landed."""
    store = table.store
    store.delete(item.key for item in store.scan(object_names.topic_prefix(table.name, table.spec.topic)))
    table.topic_id, table.next_offset = "another", 0
    for _ in range(2):
        table.deliver([event(2, "c", 100)])
    with pytest.raises(TopicRecreatedError, match="come from another topic of that name"):
        table.upsert()
