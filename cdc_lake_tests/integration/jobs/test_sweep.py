"""The sweep after a new snapshot: what it left out is deleted, what it told or what came since is not."""

from __future__ import annotations

import pytest

from cdc_lake.contract.errors import LeaseHeldError, SnapshotNotAppliedError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.table import lease, timeline
from cdc_lake.jobs.maintenance import sweep
from cdc_lake.jobs.maintenance.sweep import SweepReport, SweepSpec
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.history_runs import open_epoch
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable

SNAPSHOT = 100
AT = 1_700_000_009_999


@pytest.fixture
def table(new_table: NewTable) -> LakeTable:
    """Keys 1 to 6 in epoch 0, 6 deleted there; a snapshot of epoch 1 tells 1 and 2, its stream 3 and 7."""
    table = new_table(COLUMNS, KEY)
    table.deliver([event(key, "c", 1000 + key, note="old") for key in range(1, 7)])
    table.deliver([event(6, "d", 2000)])
    table.upsert()
    open_epoch(table, 1)
    told = [event(key, "r", SNAPSHOT, "true", note="told") for key in (1, 2)]
    table.deliver([*told, event(3, "u", SNAPSHOT - 10, note="streamed"), event(7, "c", SNAPSHOT + 1)], epoch=1)
    table.upsert()
    return table


def swept(table: LakeTable, epoch: int = 1, lsn: int = SNAPSHOT) -> SweepReport:
    """Sweep to the snapshot, which the chain has by now."""
    return sweep.run(table.engines.spark, SweepSpec(table.spec, epoch, table.chain.length(), lsn, AT))


def alive(table: LakeTable) -> dict[object, object]:
    """The notes of the rows that are not deleted, by key."""
    return {row["id"]: row["note"] for row in table.by_hudi_rs() if not row["__deleted"]}


def test_what_the_snapshot_left_out_is_deleted(table: LakeTable) -> None:
    before = timeline.last_commit(table.store, table.spec.prefix)
    assert swept(table).swept == 2
    assert alive(table) == {1: "told", 2: "told", 3: "streamed", 7: None}
    rows = {row["id"]: row for row in table.by_spark()}
    assert set(rows) == {1, 2, 3, 4, 5, 6, 7}
    gone = rows[4]
    assert (gone["note"], gone["__op"], gone["__snapshot"], gone["__deleted"]) == ("old", "d", "swept", True)
    assert (gone["__lsn"], gone["__source_ts_ms"], gone["__txid"]) == (SNAPSHOT, AT, None)
    assert rows[6]["__lsn"] == 2000, "a row that was deleted already was touched"
    after = timeline.last_commit(table.store, table.spec.prefix)
    assert before is not None
    assert after is not None
    assert after.instant != before.instant
    assert after.checkpoint == before.checkpoint


def test_again_it_changes_nothing(table: LakeTable) -> None:
    swept(table)
    before = timeline.last_commit(table.store, table.spec.prefix)
    again = swept(table)
    assert (again.instant, again.swept) == (None, 0)
    assert timeline.last_commit(table.store, table.spec.prefix) == before


def test_what_comes_late_of_the_snapshot_or_the_stream_wins(table: LakeTable) -> None:
    swept(table)
    table.deliver([event(4, "r", SNAPSHOT, "true", note="late"), event(5, "c", SNAPSHOT - 50, note="again")], epoch=1)
    table.upsert()
    assert alive(table)[4] == "late"
    assert alive(table)[5] == "again"
    assert swept(table).swept == 0


def test_a_snapshot_that_was_taken_again_sweeps_the_first_one(table: LakeTable) -> None:
    """Key 2 was told by the first attempt, and deleted before the second one."""
    again = SNAPSHOT + 40
    table.deliver([event(key, "r", again, "true", note="told again") for key in (1, 3)], epoch=1)
    table.upsert()
    assert swept(table, lsn=again).swept == 3
    # A streamed change is newer than any snapshot of its epoch.
    assert alive(table) == {1: "told again", 3: "streamed", 7: None}


def test_a_table_that_does_not_exist_has_nothing(new_table: NewTable) -> None:
    assert swept(new_table(COLUMNS, KEY)).swept == 0


def test_a_table_that_has_not_applied_the_snapshot_is_refused(table: LakeTable) -> None:
    """Rows that the snapshot has and the table not yet would be taken for deleted ones."""
    table.deliver([event(key, "r", SNAPSHOT, "true", note="told") for key in (4, 5)], epoch=1)
    with pytest.raises(SnapshotNotAppliedError, match="has applied manifest 4, and the snapshot ends in manifest 5"):
        swept(table)
    with pytest.raises(SnapshotNotAppliedError, match="epoch 2: it has applied manifest 4 of epoch 1"):
        swept(table, epoch=2)
    assert set(alive(table)) == {1, 2, 3, 4, 5, 7}
    table.upsert()
    assert swept(table).swept == 0


def test_another_writer_is_not_disturbed(table: LakeTable) -> None:
    key = object_names.lease_key(table.name, "orders")
    with lease.held(table.store, key, "dagster run 1"), pytest.raises(LeaseHeldError, match="dagster run 1"):
        swept(table)
    assert len(alive(table)) == 6
