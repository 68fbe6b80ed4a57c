"""What stops an upsert before it has changed anything, and what it costs when nothing is new."""

from __future__ import annotations

from typing import NoReturn, cast

import pytest
from pyspark.sql import SparkSession

from cdc_lake.contract.errors import LeaseHeldError, ManifestGapError, ObjectDamagedError, TopicRecreatedError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.table import lease, timeline
from cdc_lake.jobs.apply import upsert
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable


class NoSpark:
    """A session that nobody may use."""

    def __getattr__(self, name: str) -> NoReturn:
        raise AssertionError(f"Spark was asked for {name}")


@pytest.fixture
def table(new_table: NewTable) -> LakeTable:
    return new_table(COLUMNS, KEY)


def commits(table: LakeTable) -> object:
    """The table's last commit."""
    return timeline.last_commit(table.store, table.spec.prefix)


@pytest.mark.parametrize("body", [None, b"", b'{"id": 1}\n'], ids=["missing", "emptied", "changed"])
def test_a_damaged_raw_object_stops_it_as_what_it_is(table: LakeTable, body: bytes | None) -> None:
    table.deliver([event(1, "c", 100)])
    key = table.objects[0].key
    if body is None:
        table.store.delete([key])
    else:
        table.store.client.put_object(Bucket=table.engines.location.bucket, Key=key, Body=body)
    with pytest.raises(ObjectDamagedError) as caught:
        table.upsert()
    assert caught.value.user_message.startswith(f"raw object {key} ")
    assert caught.value.user_message.endswith("or start over with `cdc-lake reset`.")
    assert commits(table) is None


def test_a_table_that_another_writer_holds_is_left_alone(table: LakeTable) -> None:
    table.deliver([event(1, "c", 100)])
    with (
        lease.held(table.store, object_names.lease_key(table.name, "orders"), "another writer"),
        pytest.raises(LeaseHeldError, match="another writer writes here"),
    ):
        table.upsert()
    assert commits(table) is None
    assert table.upsert().inserts == 1
    assert_that_nothing_new_is_quick(table)
    assert_that_another_manifest_of_that_number_is_noticed(table)
    assert_that_a_recreated_topic_is_noticed(table)


def assert_that_nothing_new_is_quick(table: LakeTable) -> None:
    before = commits(table)
    report = upsert.run(cast(SparkSession, NoSpark()), table.spec)
    assert (report.instant, report.events) == (None, 0)
    assert report.seconds < 1
    assert commits(table) == before


def assert_that_another_manifest_of_that_number_is_noticed(table: LakeTable) -> None:
    """Someone removed manifests, and what was landed in their place was cut elsewhere."""
    before, key = table.chain.read(1), object_names.manifest_key(table.name, table.spec.topic, 1)
    bucket = table.engines.location.bucket
    for attempt in ("anew", before.attempt):
        body = before.model_copy(update={"attempt": attempt}).encode()
        table.store.client.put_object(Bucket=bucket, Key=key, Body=body)
        if attempt == "anew":
            with pytest.raises(ManifestGapError, match=r"manifest 1 .* is another one than was applied"):
                table.upsert()


def assert_that_a_recreated_topic_is_noticed(table: LakeTable) -> None:
    """Someone removed the raw objects, but not the table, and landed another topic of the name."""
    store = table.store
    store.delete(item.key for item in store.scan(object_names.topic_prefix(table.name, table.spec.topic)))
    table.topic_id, table.next_offset = "another", 0
    for _ in range(2):
        table.deliver([event(2, "c", 100)])
    with pytest.raises(TopicRecreatedError, match="come from another topic of that name"):
        table.upsert()
