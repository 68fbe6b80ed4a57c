"""Two writers of one table: the one that was paused and lost its lease commits nothing and undoes nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cdc_lake.contract.errors import LeaseLostError
from cdc_lake.contract.table import failed_writes, timeline
from cdc_lake.jobs.maintenance import purge
from cdc_lake.jobs.maintenance.purge import PurgeSpec
from cdc_lake_tests.faults.jobs import paused_writer
from cdc_lake_tests.faults.jobs.paused_writer import Writer
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.integration.jobs.test_purge import WINDOW, change, heartbeat

Pause = Callable[[str, str], Writer]


@pytest.fixture
def table(new_table: NewTable) -> LakeTable:
    """A table with two keys, and a batch that changes one and adds another."""
    table = new_table(COLUMNS, KEY)
    table.deliver([event(1, "c", 100, note="old"), event(2, "c", 101)])
    table.upsert()
    table.deliver([event(1, "u", 200, note="new"), event(3, "c", 201)])
    return table


@pytest.fixture
def pause(table: LakeTable, pause_writer: paused_writer.Pause) -> Pause:
    """Starts an upsert of the table that pauses at a place."""
    return lambda owner, place: pause_writer(replace(table.spec, owner=owner), place, table.upsert)


def notes(table: LakeTable) -> dict[object, object]:
    """The table's content, by two readers; a key that is there twice is an error."""
    rows = table.by_hudi_rs()
    found = {row["id"]: row["note"] for row in rows}
    assert len(found) == len(rows)
    assert found == {row["id"]: row["note"] for row in table.by_spark()}
    return found


def committed(table: LakeTable) -> timeline.Checkpoint:
    """The table's checkpoint."""
    commit = timeline.last_commit(table.store, table.spec.prefix)
    assert commit is not None
    assert commit.checkpoint is not None
    return commit.checkpoint


def files(table: LakeTable) -> set[str]:
    """The table's data files."""
    return {item.key for item in table.store.scan(table.spec.prefix) if item.key.endswith(".parquet")}


@pytest.mark.parametrize("place", ["upsert.before_write", "commit.before_lease_check"])
def test_a_writer_that_wakes_up_after_the_next_one_commits_nothing(table: LakeTable, pause: Pause, place: str) -> None:
    first = pause("first", place)
    table.deliver([event(1, "u", 300, note="newest")])
    second = replace(table.spec, owner="second", lease_wait_seconds=60)
    assert table.upsert(second).manifests == 2
    after = committed(table)
    assert isinstance(first.wake().error, LeaseLostError)
    assert "commits nothing; run it again" in str(first.error)
    assert committed(table) == after
    assert notes(table) == {1: "newest", 2: None, 3: None}
    assert_that_the_next_run_leaves_nothing(table)


def test_a_writer_that_is_paused_after_its_last_look_at_the_lease_commits_nothing(
    table: LakeTable, pause: Pause
) -> None:
    """The second writer has rolled back what the first one began; Hudi then has nothing to complete."""
    first = pause("first", "commit.after_lease_check")
    table.deliver([event(1, "u", 300, note="newest")])
    assert table.upsert(replace(table.spec, owner="second", lease_wait_seconds=60)).manifests == 2
    after, there = committed(table), files(table)
    assert isinstance(first.wake().error, LeaseLostError)
    assert "was taken by second" in str(first.error)
    assert committed(table) == after
    assert files(table) == there
    assert notes(table) == {1: "newest", 2: None, 3: None}
    assert_that_the_next_run_leaves_nothing(table)


def test_a_writer_that_wakes_up_undoes_nothing_of_the_next_one(table: LakeTable, pause: Pause) -> None:
    first = pause("first", "upsert.before_write")
    second = pause("second", "commit.before_lease_check")
    assert isinstance(first.wake().error, LeaseLostError)
    assert second.wake().error is None
    assert notes(table) == {1: "new", 2: None, 3: None}
    assert_that_the_next_run_leaves_nothing(table)


def test_files_that_were_written_after_their_rollback_are_swept(table: LakeTable, pause: Pause) -> None:
    first = pause("first", "commit.before_lease_check")
    [instant] = failed_writes.incomplete_commits(table.store, table.spec.prefix)
    late = [key for key in files(table) if instant in key]
    markers = [item.key for item in table.store.scan(f"{table.spec.prefix}.hoodie/.temp/{instant}/")]
    kept = {key: table.store.get(key) for key in [*late, *markers]}
    assert late
    assert markers
    table.upsert(replace(table.spec, owner="second", lease_wait_seconds=60))
    assert not files(table) & set(late)
    # As if its executors had written them only now.
    for key, stored in kept.items():
        assert stored is not None
        table.store.put_new(key, stored.body)
    first.wake()
    assert not files(table) & set(late)
    assert notes(table) == {1: "new", 2: None, 3: None}


def test_a_commit_that_was_begun_is_rolled_back_by_the_next_run(table: LakeTable, pause: Pause) -> None:
    first = pause("first", "commit.before_lease_check")
    [instant] = failed_writes.incomplete_commits(table.store, table.spec.prefix)
    assert any(instant in key for key in files(table))
    table.upsert(replace(table.spec, owner="second", lease_wait_seconds=60))
    assert failed_writes.incomplete_commits(table.store, table.spec.prefix) == []
    assert not any(instant in key for key in files(table))
    first.wake()


def test_a_commit_that_completes_while_the_next_writer_recovers_is_not_undone(table: LakeTable, pause: Pause) -> None:
    """The next writer listed it as begun; before it rolls back, it looks again."""
    first = pause("first", "commit.after_lease_check")
    second = pause("second", "recover.before_rollback")
    assert isinstance(first.wake().error, LeaseLostError)
    commit = timeline.last_commit(table.store, table.spec.prefix)
    second.wake()
    assert second.error is None
    assert second.report.instant is None  # all that was landed is in the commit
    assert timeline.last_commit(table.store, table.spec.prefix) == commit
    assert notes(table) == {1: "new", 2: None, 3: None}
    assert_that_the_next_run_leaves_nothing(table)


def test_what_a_purge_that_completes_during_the_recovery_removed_stays_known(
    new_table: NewTable, pause_writer: paused_writer.Pause
) -> None:
    """The upsert's checkpoint is that of the purge, and not the one from before its recovery."""
    table = new_table(COLUMNS, KEY)
    table.deliver([change(1, "c", 1), change(1, "d", 2), change(2, "c", 2)], watermark=heartbeat(20))
    table.upsert()
    table.deliver([change(3, "c", 21)], watermark=heartbeat(21))
    first = pause_writer(
        replace(table.spec, owner="the purge"),
        "commit.after_lease_check",
        lambda spec: purge.run(table.engines.spark, PurgeSpec(spec, WINDOW)),
    )
    second = pause_writer(replace(table.spec, owner="the upsert"), "recover.before_rollback", table.upsert)
    assert isinstance(first.wake().error, LeaseLostError)
    purged = committed(table)
    assert purged.purged_to is not None
    assert second.wake().error is None
    after = committed(table)
    assert (after.manifest, after.purged_to, after.purged_before_ms) == (2, purged.purged_to, purged.purged_before_ms)
    assert set(notes(table)) == {2, 3}


def assert_that_the_next_run_leaves_nothing(table: LakeTable) -> None:
    before = notes(table)
    table.deliver([event(9, "c", 900)])
    table.upsert()
    assert failed_writes.incomplete_commits(table.store, table.spec.prefix) == []
    assert notes(table) == {**before, 9: None}
    there = [item.key for item in table.store.scan(f"{table.spec.prefix}.hoodie/.temp/") if ".marker." in item.key]
    assert there == []
