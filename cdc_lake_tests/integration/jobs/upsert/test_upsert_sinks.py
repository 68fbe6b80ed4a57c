"""Objects in the formats of the vendors' sink connectors, on a real store, adopted and applied by Spark."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from cdc_lake.contract.objects import dead_letters
from cdc_lake.jobs.adoption import adopt
from cdc_lake.jobs.adoption.adopt import AdoptReport, AdoptSpec
from cdc_lake.jobs.adoption.sink import Sink
from cdc_lake.jobs.landing.land_spec import LandSpec
from cdc_lake_tests.helpers.sink_objects import (
    AIVEN,
    AIVEN_ENVELOPE,
    BY_FIELD,
    CONFLUENT,
    LENSES,
    Record,
    TopicInMemory,
    object_key,
    written,
)
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.history_runs import open_epoch
from cdc_lake_tests.integration.jobs.hudi_table import TOPIC, LakeTable

TESTS_IN_CI = 3

MARKERS = {10, 21}
POISON = 13


def topic() -> TopicInMemory:
    """Return a topic with thirty records of ten keys, transaction markers between them, and one unreadable record."""
    found = TopicInMemory.of(sorted(set(range(32)) - MARKERS), 32)
    for offset in found.values[0]:
        found.values[0][offset] = json.dumps(event(offset % 10, "u", 100 + offset, qty=offset)).encode()
    found.values[0][POISON] = b"5"
    return found


def expected(found: TopicInMemory) -> dict[int, int]:
    """Return the newest quantity by key."""
    rows = [json.loads(value) for offset, value in sorted(found.values[0].items()) if offset != POISON]
    return {row["id"]: row["qty"] for row in rows}


def write(
    table: LakeTable, sink: Sink, records: Sequence[Record], folder: str = "customer_id=ALFKI/order_id=1"
) -> None:
    """Write an object as the connector does, replacing one of the same name."""
    key = object_key(sink, TOPIC, 0, records, folder)
    table.store.delete([key])
    table.store.put_new(key, written(sink, TOPIC, 0, records))


def adopted(table: LakeTable, sink: Sink, found: TopicInMemory, epoch: int = 0) -> AdoptReport:
    """Run an adoption."""
    landing = LandSpec(
        location=table.engines.location,
        pipeline=table.name,
        topic=TOPIC,
        topic_id=table.topic_id,
        begins={0: 0},
        ends=found.ends,
        chain="",
        head=table.chain.length(),
        kafka={},
        epoch=epoch,
    )
    return adopt.run(AdoptSpec(landing, sink), found)


def applied(table: LakeTable) -> dict[object, object]:
    """Return the lake's quantities by key; Spark and hudi-rs must agree."""
    by_hudi_rs = {row["id"]: row["qty"] for row in table.by_hudi_rs()}
    assert by_hudi_rs == {row["id"]: row["qty"] for row in table.by_spark()}
    return by_hudi_rs


@pytest.mark.parametrize(
    "vendor", [LENSES, CONFLUENT, AIVEN, AIVEN_ENVELOPE], ids=lambda sink: f"{sink.layout}-{sink.framing}"
)
def test_a_vendors_objects_are_applied_once(new_table: NewTable, vendor: Sink) -> None:
    table, found = new_table(COLUMNS, KEY), topic()
    sink = replace(vendor, prefix=f"raw/{table.name}/_sink/")
    write(table, sink, found.records_between(0, 12))
    assert adopted(table, sink, found).records == 12
    table.upsert()
    write(table, sink, found.records_between(6, 16))  # written again after a restart
    write(table, sink, found.records_between(17, 31))
    adopted(table, sink, found)
    report = table.upsert()
    assert report.dead_letters == 1
    assert applied(table) == expected(found)
    [letter] = dead_letters.letters(table.store, table.name)
    assert (letter.partition, letter.offset) == (0, POISON)
    assert table.upsert().commit is None


def test_a_dead_letter_has_the_epoch_of_its_objects_adoption(new_table: NewTable) -> None:
    """With an earlier epoch, a replay would take the letter for overtaken and close it."""
    table, found = new_table(COLUMNS, KEY), topic()
    sink = replace(LENSES, prefix=f"raw/{table.name}/_sink/")
    write(table, sink, found.records_between(0, 9))
    adopted(table, sink, found)
    table.next_offset = 11
    open_epoch(table, 1)
    write(table, sink, found.records_between(11, 31))
    adopted(table, sink, found, epoch=1)
    assert table.upsert().dead_letters == 1
    [letter] = dead_letters.letters(table.store, table.name)
    assert (letter.offset, letter.epoch) == (POISON, 1)


def test_objects_partitioned_by_field_are_applied_up_to_the_first_gap(new_table: NewTable) -> None:
    table, found = new_table(COLUMNS, KEY), topic()
    sink = replace(BY_FIELD, prefix=f"raw/{table.name}/_sink/")
    everything = found.records_between(0, 31)
    write(table, sink, everything[0::2], "customer_id=ALFKI/order_id=1")
    report = adopted(table, sink, found)
    assert report.records == 1
    assert report.gaps
    table.upsert()
    assert applied(table) == {0: 0}
    write(table, sink, everything[1::2], "customer_id=ANATR/order_id=2")
    adopted(table, sink, found)
    table.upsert()
    assert applied(table) == expected(found)
