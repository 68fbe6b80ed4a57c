"""Replays: a table that is loaded from raw after a replay gets the replayed change too, by another replay."""

from __future__ import annotations

from dataclasses import replace

from cdc_lake.contract.objects import dead_letters
from cdc_lake.jobs.maintenance import replay
from cdc_lake.jobs.maintenance.replay import ReplaySpec
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable, record_bytes


def test_a_table_that_is_loaded_after_a_replay_needs_that_replay(new_table: NewTable) -> None:
    table = new_table(COLUMNS, KEY)
    table.deliver([event(1, "c", 100, note="readable"), b"no JSON"])
    table.upsert()
    [letter] = dead_letters.letters(table.store, table.name)
    corrected = record_bytes(event(2, "c", 200, note="corrected"))
    dead_letters.replace_value(table.store, table.name, letter, corrected)
    assert replay.run(table.engines.spark, ReplaySpec(table.spec)).applied == [letter.id]
    assert list(dead_letters.letters(table.store, table.name)) == []

    added = replace(table.spec, target="added")
    assert table.upsert(added).dead_letters == 1
    [again] = dead_letters.letters(table.store, table.name)
    assert (again.id, again.closed) == (letter.id, None)
    assert replay.run(table.engines.spark, ReplaySpec(added)).applied == [letter.id]
    assert rows(table, added.prefix) == rows(table, table.spec.prefix) == {1: "readable", 2: "corrected"}


def rows(table: LakeTable, prefix: str) -> dict[object, object]:
    """Return the notes by key, of the table below a prefix."""
    found = table.engines.spark.read.format("hudi").load(f"s3a://{table.engines.location.bucket}/{prefix}")
    return {row["id"]: row["note"] for row in found.collect()}
