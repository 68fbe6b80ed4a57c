"""The sweep after a new snapshot deletes the rows that are neither in the snapshot nor in a later change."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from cdc_lake.contract.errors import LeaseHeldError, SnapshotNotAppliedError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.source.epochs import Completion, Epochs
from cdc_lake.contract.table import lease, timeline
from cdc_lake.jobs.maintenance import sweep
from cdc_lake.jobs.maintenance.sweep import SweepReport, SweepSpec
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.history_runs import open_epoch
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable

TESTS_IN_CI = 3

SNAPSHOT = 100
AT = 1_700_000_009_999


@pytest.fixture
def table_before_sweep(new_table: NewTable) -> LakeTable:
    """Return a table: epoch 0 has keys 1 to 6 (6 deleted); in epoch 1 the snapshot has 1 and 2, the stream 3 and 7."""
    table = new_table(COLUMNS, KEY)
    table.deliver([event(key, "c", 1000 + key, note="old") for key in range(1, 7)])
    table.deliver([event(6, "d", 2000)])
    table.upsert()
    open_epoch(table, 1)
    snapshot = [event(key, "r", SNAPSHOT, "true", note="snapshot") for key in (1, 2)]
    table.deliver([*snapshot, event(3, "u", SNAPSHOT - 10, note="streamed"), event(7, "c", SNAPSHOT + 1)], epoch=1)
    table.upsert()
    return table


def swept(table: LakeTable, epoch: int = 1, lsn: int = SNAPSHOT) -> SweepReport:
    """Sweep to the snapshot, all of which is landed."""
    return sweep.run(table.engines.spark, SweepSpec(table.spec, epoch, table.chain.length(), lsn, AT))


def undeleted(table: LakeTable) -> dict[object, object]:
    """Return the notes of the rows that are not deleted, by key."""
    return {row["id"]: row["note"] for row in table.by_hudi_rs() if not row["__deleted"]}


def test_rows_that_are_not_in_the_snapshot_are_deleted(table_before_sweep: LakeTable) -> None:
    before = timeline.last_commit(table_before_sweep.store, table_before_sweep.spec.prefix)
    assert swept(table_before_sweep).swept == 2
    assert undeleted(table_before_sweep) == {1: "snapshot", 2: "snapshot", 3: "streamed", 7: None}
    rows = {row["id"]: row for row in table_before_sweep.by_spark()}
    assert set(rows) == {1, 2, 3, 4, 5, 6, 7}
    gone = rows[4]
    assert (gone["note"], gone["__op"], gone["__snapshot"], gone["__deleted"]) == ("old", "d", "swept", True)
    assert (gone["__lsn"], gone["__source_ts_ms"], gone["__txid"]) == (SNAPSHOT, AT, None)
    assert rows[6]["__lsn"] == 2000, "a row that was already deleted was changed"
    after = timeline.last_commit(table_before_sweep.store, table_before_sweep.spec.prefix)
    assert before is not None
    assert after is not None
    assert after.instant != before.instant
    assert after.checkpoint == before.checkpoint


def test_a_second_sweep_changes_nothing(table_before_sweep: LakeTable) -> None:
    swept(table_before_sweep)
    before = timeline.last_commit(table_before_sweep.store, table_before_sweep.spec.prefix)
    again = swept(table_before_sweep)
    assert again.swept == 0
    assert timeline.last_commit(table_before_sweep.store, table_before_sweep.spec.prefix) == before


def test_late_changes_of_the_snapshot_and_the_stream_win_over_the_sweep(table_before_sweep: LakeTable) -> None:
    swept(table_before_sweep)
    table_before_sweep.deliver(
        [event(4, "r", SNAPSHOT, "true", note="late"), event(5, "c", SNAPSHOT - 50, note="again")], epoch=1
    )
    table_before_sweep.upsert()
    assert undeleted(table_before_sweep)[4] == "late"
    assert undeleted(table_before_sweep)[5] == "again"
    assert swept(table_before_sweep).swept == 0


def test_a_repeated_snapshot_sweeps_the_rows_of_the_first_attempt(table_before_sweep: LakeTable) -> None:
    """Key 2 is in the first attempt, and was deleted before the second one."""
    again = SNAPSHOT + 40
    table_before_sweep.deliver([event(key, "r", again, "true", note="second snapshot") for key in (1, 3)], epoch=1)
    table_before_sweep.upsert()
    assert swept(table_before_sweep, lsn=again).swept == 3
    # A streamed change is newer than any snapshot of its epoch.
    assert undeleted(table_before_sweep) == {1: "second snapshot", 3: "streamed", 7: None}


@pytest.mark.parametrize("complete", [True, False])
def test_a_table_that_is_first_loaded_after_a_resnapshot_has_the_rows_of_the_source(
    new_table: NewTable, complete: bool
) -> None:
    """Key 2 was deleted between two attempts at the snapshot of epoch 1, which sweeps the table if it is incomplete."""
    table = new_table(COLUMNS, KEY)
    table.deliver([event(key, "c", 1000 + key, note="old") for key in (1, 2)])
    open_epoch(table, 1)
    attempt = [event(key, "r", SNAPSHOT - 40, "true", note="first attempt") for key in (1, 2)]
    table.deliver([*attempt, event(1, "r", SNAPSHOT, "true", note="snapshot")], epoch=1)
    if complete:
        done = Completion(snapshot_lsn=SNAPSHOT, completed_at=datetime.now(UTC))
        Epochs(table.store, table.name).complete(1, done)
    assert table.upsert().manifests == table.chain.length()
    assert undeleted(table) == {1: "snapshot"} | ({} if complete else {2: "first attempt"})


def test_a_table_that_does_not_exist_is_not_swept(new_table: NewTable) -> None:
    assert swept(new_table(COLUMNS, KEY)).swept == 0


def test_a_table_that_has_not_applied_the_snapshot_is_refused(table_before_sweep: LakeTable) -> None:
    """Rows of the snapshot that the table does not have yet would be taken for deleted ones."""
    table_before_sweep.deliver([event(key, "r", SNAPSHOT, "true", note="snapshot") for key in (4, 5)], epoch=1)
    with pytest.raises(SnapshotNotAppliedError, match="has applied manifest 4, and the snapshot ends in manifest 5"):
        swept(table_before_sweep)
    with pytest.raises(SnapshotNotAppliedError, match="epoch 2 does not have: the table has applied manifest 4"):
        swept(table_before_sweep, epoch=2)
    assert set(undeleted(table_before_sweep)) == {1, 2, 3, 4, 5, 7}
    table_before_sweep.upsert()
    assert swept(table_before_sweep).swept == 0


def test_a_sweep_fails_while_another_writer_has_the_lease(table_before_sweep: LakeTable) -> None:
    key = object_names.lease_key(table_before_sweep.name, "orders")
    with (
        lease.held(table_before_sweep.store, key, "dagster run 1"),
        pytest.raises(LeaseHeldError, match="dagster run 1"),
    ):
        swept(table_before_sweep)
    assert len(undeleted(table_before_sweep)) == 6
