"""Merge-on-read: changes in log files, the same rows before and after a compaction, and interrupted compactions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from cdc_lake.contract.errors import LeaseLostError
from cdc_lake.contract.table import failed_writes, instants, lease, timeline
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.maintenance import compact
from cdc_lake.jobs.maintenance.compact import CompactSpec
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable

TESTS_IN_CI = 2

Rows = Mapping[object, tuple[object, object]]
"""Note and deletion of each row by id."""


def spec_of(table: LakeTable, *partition_by: str) -> UpsertSpec:
    """Return the spec of a merge-on-read table."""
    return replace(table.spec, table_type="mor", partition_by=partition_by)


def rows(read: Sequence[Mapping[str, object]]) -> Rows:
    """Return the rows by id; a row that is there twice fails."""
    assert len({row["id"] for row in read}) == len(read), read
    return {row["id"]: (row["note"], row["__deleted"]) for row in read}


def base_files(table: LakeTable) -> list[dict[str, object]]:
    """Return the rows of base files only."""
    reader = table.engines.spark.read.format("hudi").option("hoodie.datasource.query.type", "read_optimized")
    return [row.asDict() for row in reader.load(table.spec.uri()).collect()]


def merged(table: LakeTable) -> Rows:
    """Return all rows, which Spark and hudi-rs must read alike."""
    found = rows(table.by_spark())
    assert rows(table.by_hudi_rs()) == found
    return found


def compacted(table: LakeTable, spec: UpsertSpec) -> timeline.Commit:
    """Compact; the checkpoint stays."""
    before = timeline.last_commit(table.store, spec.prefix)
    commit = compact.run(table.engines.spark, CompactSpec(spec)).commit
    assert commit is not None
    assert before is not None
    assert commit.checkpoint == before.checkpoint
    assert timeline.last_commit(table.store, spec.prefix) == commit
    # Otherwise Hudi would count log files that follow to the base file before this compaction.
    [completed] = table.store.scan(f"{spec.prefix}.hoodie/{commit.instant}.commit")
    assert completed.modified >= instants.time_of(commit.instant)
    return commit


def test_late_changes_lose_before_and_after_a_compaction(new_table: NewTable) -> None:
    table = new_table(COLUMNS, KEY)
    spec = spec_of(table)
    table.deliver([event(key, "c", 10 + key, note=f"n{key}") for key in (1, 2, 3)])
    first = table.upsert(spec)
    assert compact.run(table.engines.spark, CompactSpec(spec)).commit is None, "there are no log files yet"

    table.deliver([event(1, "u", 20, note="newer"), event(3, "d", 21, note="n3")])
    table.upsert(spec)
    table.deliver([event(3, "u", 15, note="late"), event(2, "u", 5, note="late"), event(1, "u", 19, note="late")])
    table.upsert(spec)
    expected: Rows = {1: ("newer", False), 2: ("n2", False), 3: ("n3", True)}
    assert merged(table) == expected
    assert rows(base_files(table)) == {1: ("n1", False), 2: ("n2", False), 3: ("n3", False)}

    done = compacted(table, spec)
    assert first.commit is not None
    assert done.instant > first.commit.instant
    assert merged(table) == rows(base_files(table)) == expected

    # The delete stays, and so does the newest change.
    table.deliver([event(3, "u", 16, note="late again"), event(1, "u", 18, note="late again")])
    table.upsert(spec)
    assert merged(table) == expected
    compacted(table, spec)
    assert merged(table) == rows(base_files(table)) == expected
    assert table.upsert(spec).commit is None, "the compaction keeps the checkpoint"


def test_a_row_that_moves_to_another_partition_exists_once(new_table: NewTable) -> None:
    table = new_table(COLUMNS, KEY)
    spec = spec_of(table, "note")
    moves = [
        [event(1, "c", 10, note="A"), event(2, "c", 11, note="A"), event(3, "c", 12, note=None)],
        [event(1, "u", 20, note="B"), event(2, "u", 21, note="B"), event(3, "u", 22, note="A")],
        [event(1, "u", 30, note="C"), event(2, "u", 31, note="A"), event(3, "u", 32, note=None)],
        [event(1, "u", 15, note="A"), event(2, "u", 16, note="A")],  # older than the move
        [event(1, "d", 40, note="C")],
    ]
    for events in moves:
        table.deliver(events)
        table.upsert(spec)
    expected: Rows = {1: ("C", True), 2: ("A", False), 3: (None, False)}
    assert merged(table) == expected
    assert len(base_files(table)) > len(expected), (
        "until a compaction, the old partitions' base files have the rows too"
    )
    compacted(table, spec)
    assert merged(table) == rows(base_files(table)) == expected


def test_an_interrupted_compaction_is_completed_by_the_next(
    new_table: NewTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A writer that lost its lease commits nothing; changes that arrive before the next compaction are kept."""
    table = new_table(COLUMNS, KEY)
    spec = spec_of(table)
    for number in range(2):
        table.deliver([event(key, "u", 10 + 10 * number + key, note=f"n{number}") for key in (1, 2)])
        table.upsert(spec)

    def lost(_: lease.Lease) -> None:
        raise LeaseLostError("lost")

    with monkeypatch.context() as patch:
        patch.setattr(lease.Lease, "secure", lost)
        with pytest.raises(LeaseLostError):
            compact.run(table.engines.spark, CompactSpec(spec))
    [pending] = failed_writes.pending_compactions(table.store, spec.prefix)
    table.deliver([event(1, "u", 40, note="during"), event(2, "d", 41, note="n1")])
    table.upsert(spec)
    expected: Rows = {1: ("during", False), 2: ("n1", True)}
    # hudi-rs 0.5 does not read log files that were written after a compaction was planned.
    assert rows(table.by_spark()) == expected

    done = compact.run(table.engines.spark, CompactSpec(spec)).commit
    assert done is not None
    assert done.instant == pending
    assert failed_writes.pending_compactions(table.store, spec.prefix) == []
    assert merged(table) == expected
    assert table.upsert(spec).commit is None
    compacted(table, spec)
    assert merged(table) == rows(base_files(table)) == expected
