"""Two writers of one table: a writer that lost its lease during a pause neither commits nor rolls back anything."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from cdc_lake.contract.errors import LeaseLostError
from cdc_lake.contract.table import failed_writes, timeline
from cdc_lake.jobs.hudi.writer import HudiTable
from cdc_lake.jobs.maintenance import cluster, purge
from cdc_lake.jobs.maintenance.cluster import ClusterSpec
from cdc_lake.jobs.maintenance.purge import PurgeSpec
from cdc_lake_tests.faults.jobs import paused_writer
from cdc_lake_tests.faults.jobs.paused_writer import Writer
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.integration.jobs.maintenance.dated_changes import WINDOW, change, heartbeat

TESTS_IN_CI = 3

Pause = Callable[[str, str], Writer]


@pytest.fixture
def table_with_pending_batch(new_table: NewTable) -> LakeTable:
    """Return a table with two keys, and a landed batch that updates one of them and inserts a third."""
    table = new_table(COLUMNS, KEY)
    table.deliver([event(1, "c", 100, note="old"), event(2, "c", 101)])
    table.upsert()
    table.deliver([event(1, "u", 200, note="new"), event(3, "c", 201)])
    return table


@pytest.fixture
def pause(table_with_pending_batch: LakeTable, pause_writer: paused_writer.Pause) -> Pause:
    """Return a function that starts an upsert of the table and pauses it at a failpoint."""
    return lambda owner, place: pause_writer(
        replace(table_with_pending_batch.spec, owner=owner), place, table_with_pending_batch.upsert
    )


def notes_by_key(table: LakeTable) -> dict[object, object]:
    """Return the notes by key. Hudi-rs and Spark must read the same, and no key may appear twice."""
    rows = table.by_hudi_rs()
    found = {row["id"]: row["note"] for row in rows}
    assert len(found) == len(rows)
    assert found == {row["id"]: row["note"] for row in table.by_spark()}
    return found


def files(table: LakeTable) -> set[str]:
    """Return the keys of the table's data files."""
    return {item.key for item in table.store.scan(table.spec.prefix) if item.key.endswith(".parquet")}


@pytest.mark.parametrize("place", ["upsert.before_write", "commit.before_lease_check"])
def test_a_writer_that_resumes_after_the_next_one_commits_nothing(
    table_with_pending_batch: LakeTable, pause: Pause, place: str
) -> None:
    first = pause("first", place)
    table_with_pending_batch.deliver([event(1, "u", 300, note="newest")])
    second = replace(table_with_pending_batch.spec, owner="second", lease_wait_seconds=60)
    assert table_with_pending_batch.upsert(second).manifests == 2
    checkpoint = table_with_pending_batch.checkpoint()
    assert isinstance(first.finish().error, LeaseLostError)
    assert "This run commits nothing. Run it again." in str(first.error)
    assert table_with_pending_batch.checkpoint() == checkpoint
    assert notes_by_key(table_with_pending_batch) == {1: "newest", 2: None, 3: None}
    assert_the_next_run_leaves_no_incomplete_commit(table_with_pending_batch)


def test_a_writer_that_is_paused_after_its_last_lease_check_commits_nothing(
    table_with_pending_batch: LakeTable, pause: Pause
) -> None:
    """The second writer has rolled back the first one's commit, so Hudi cannot complete it."""
    first = pause("first", "commit.after_lease_check")
    table_with_pending_batch.deliver([event(1, "u", 300, note="newest")])
    assert (
        table_with_pending_batch.upsert(
            replace(table_with_pending_batch.spec, owner="second", lease_wait_seconds=60)
        ).manifests
        == 2
    )
    checkpoint, data_files = table_with_pending_batch.checkpoint(), files(table_with_pending_batch)
    assert isinstance(first.finish().error, LeaseLostError)
    assert "was taken by second" in str(first.error)
    assert table_with_pending_batch.checkpoint() == checkpoint
    assert files(table_with_pending_batch) == data_files
    assert notes_by_key(table_with_pending_batch) == {1: "newest", 2: None, 3: None}
    assert_the_next_run_leaves_no_incomplete_commit(table_with_pending_batch)


def test_a_writer_that_resumes_rolls_back_nothing_of_the_next_one(
    table_with_pending_batch: LakeTable, pause: Pause
) -> None:
    first = pause("first", "upsert.before_write")
    second = pause("second", "commit.before_lease_check")
    assert isinstance(first.finish().error, LeaseLostError)
    assert second.finish().error is None
    assert notes_by_key(table_with_pending_batch) == {1: "new", 2: None, 3: None}
    assert_the_next_run_leaves_no_incomplete_commit(table_with_pending_batch)


def test_files_written_after_their_rollback_are_removed(table_with_pending_batch: LakeTable, pause: Pause) -> None:
    first = pause("first", "commit.before_lease_check")
    [instant] = failed_writes.incomplete_commits(table_with_pending_batch.store, table_with_pending_batch.spec.prefix)
    late = [key for key in files(table_with_pending_batch) if instant in key]
    markers = [
        item.key
        for item in table_with_pending_batch.store.scan(
            f"{table_with_pending_batch.spec.prefix}.hoodie/.temp/{instant}/"
        )
    ]
    kept = {key: table_with_pending_batch.store.get(key) for key in [*late, *markers]}
    assert late
    assert markers
    table_with_pending_batch.upsert(replace(table_with_pending_batch.spec, owner="second", lease_wait_seconds=60))
    assert not files(table_with_pending_batch) & set(late)
    # As if the first writer's executors had written them after the rollback.
    for key, stored in kept.items():
        assert stored is not None
        table_with_pending_batch.store.put_new(key, stored.body)
    first.finish()
    assert not files(table_with_pending_batch) & set(late)
    assert notes_by_key(table_with_pending_batch) == {1: "new", 2: None, 3: None}


def test_an_incomplete_commit_is_rolled_back_by_the_next_run(table_with_pending_batch: LakeTable, pause: Pause) -> None:
    first = pause("first", "commit.before_lease_check")
    [instant] = failed_writes.incomplete_commits(table_with_pending_batch.store, table_with_pending_batch.spec.prefix)
    assert any(instant in key for key in files(table_with_pending_batch))
    table_with_pending_batch.upsert(replace(table_with_pending_batch.spec, owner="second", lease_wait_seconds=60))
    assert failed_writes.incomplete_commits(table_with_pending_batch.store, table_with_pending_batch.spec.prefix) == []
    assert not any(instant in key for key in files(table_with_pending_batch))
    first.finish()


def test_a_commit_that_completes_during_the_next_writers_recovery_is_kept(
    table_with_pending_batch: LakeTable, pause: Pause
) -> None:
    """The next writer has listed the commit as incomplete, and lists it again before it rolls it back."""
    first = pause("first", "commit.after_lease_check")
    second = pause("second", "recover.before_rollback")
    assert isinstance(first.finish().error, LeaseLostError)
    commit = timeline.last_commit(table_with_pending_batch.store, table_with_pending_batch.spec.prefix)
    second.finish()
    assert second.error is None
    assert second.report.commit is None  # the first writer's commit contains all landed records
    assert timeline.last_commit(table_with_pending_batch.store, table_with_pending_batch.spec.prefix) == commit
    assert notes_by_key(table_with_pending_batch) == {1: "new", 2: None, 3: None}
    assert_the_next_run_leaves_no_incomplete_commit(table_with_pending_batch)


def test_the_bounds_of_a_purge_that_completes_during_the_recovery_are_kept(
    new_table: NewTable, pause_writer: paused_writer.Pause
) -> None:
    """The upsert continues from the purge's checkpoint, not from the one before its recovery."""
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
    assert isinstance(first.finish().error, LeaseLostError)
    purged = table.checkpoint()
    assert purged.purged_to is not None
    assert second.finish().error is None
    after = table.checkpoint()
    assert (after.manifest, after.purged_to, after.purged_before_ms) == (2, purged.purged_to, purged.purged_before_ms)
    assert set(notes_by_key(table)) == {2, 3}


def test_a_clustering_that_resumes_after_the_next_writer_commits_nothing(
    new_table: NewTable, pause_writer: paused_writer.Pause, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hudi has no hook before it completes a clustering. The clustering fails because its plan was rolled back."""
    options = HudiTable.options
    monkeypatch.setattr(HudiTable, "options", lambda table: {**options(table), "hoodie.parquet.small.file.limit": "0"})
    table = new_table(COLUMNS, KEY)
    for number in range(1, 4):
        table.deliver([event(number, "c", 100 + number)])
        table.upsert()
    table.deliver([event(1, "u", 200, note="newest")])
    first = pause_writer(
        replace(table.spec, owner="first"),
        "commit.after_lease_check",
        lambda spec: cluster.run(table.engines.spark, ClusterSpec(spec)),
    )
    table.upsert(replace(table.spec, owner="second", lease_wait_seconds=60))
    checkpoint, data_files = table.checkpoint(), files(table)
    assert isinstance(first.finish().error, LeaseLostError)
    assert table.checkpoint() == checkpoint
    assert files(table) == data_files
    assert notes_by_key(table) == {1: "newest", 2: None, 3: None}
    assert_the_next_run_leaves_no_incomplete_commit(table)


def assert_the_next_run_leaves_no_incomplete_commit(table: LakeTable) -> None:
    before = notes_by_key(table)
    table.deliver([event(9, "c", 900)])
    table.upsert()
    assert failed_writes.incomplete_commits(table.store, table.spec.prefix) == []
    assert notes_by_key(table) == {**before, 9: None}
    markers = [item.key for item in table.store.scan(f"{table.spec.prefix}.hoodie/.temp/") if ".marker." in item.key]
    assert markers == []
