"""Two writers of one table: the one that was paused and lost its lease commits nothing and undoes nothing.

A pause is played in this process: the writer waits, and its lease is not renewed meanwhile, as if it were stopped by
SIGSTOP (the tests of faults do that to processes).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from threading import Event, Thread

import pytest

from cdc_lake.contract import failpoints, leftovers, timeline
from cdc_lake.contract.errors import LeaseLostError
from cdc_lake.contract.lease import Lease
from cdc_lake.jobs.upsert import UpsertReport
from cdc_lake_tests.integration.jobs.conftest import NewTable
from cdc_lake_tests.integration.jobs.events import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.tables import LakeTable

SECONDS = 2.0
BOUND = 120.0


@dataclass
class Writer:
    """One upsert in a thread of its own, paused the first time that it gets to a place."""

    table: LakeTable
    owner: str
    place: str
    paused: Event = field(default_factory=Event)
    go_on: Event = field(default_factory=Event)
    report: UpsertReport | None = None
    error: Exception | None = None

    def start(self) -> Writer:
        """Run until the place is reached."""
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self.paused.wait(BOUND), f"{self.owner} ended before it got to {self.place}: {self.error}"
        return self

    def wake(self) -> Writer:
        """Run on to the end."""
        self.go_on.set()
        self._thread.join(BOUND)
        assert not self._thread.is_alive()
        return self

    def asleep(self) -> bool:
        """Whether it is in its pause."""
        return self.paused.is_set() and not self.go_on.is_set()

    def _run(self) -> None:
        try:
            self.report = self.table.upsert(
                replace(self.table.spec, owner=self.owner, lease_seconds=SECONDS, lease_wait_seconds=60)
            )
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error


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
def pause(table: LakeTable, monkeypatch: pytest.MonkeyPatch) -> Iterator[Pause]:
    """Starts a writer that pauses at a place."""
    writers: list[Writer] = []
    renew = Lease.renew

    def reached(name: str) -> None:
        for writer in writers:
            if writer.place == name and not writer.paused.is_set():
                writer.paused.set()
                writer.go_on.wait(BOUND)
                return

    def renewed(lease: Lease) -> None:
        if any(writer.asleep() and writer.owner == lease._record.owner for writer in writers):
            raise TimeoutError("its process is stopped")
        renew(lease)

    def started(owner: str, place: str) -> Writer:
        writers.append(Writer(table, owner, place))
        return writers[-1].start()

    monkeypatch.setattr(failpoints, "reached", reached)
    monkeypatch.setattr(Lease, "renew", renewed)
    yield started
    for writer in writers:
        writer.wake()


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
    [instant] = leftovers.begun(table.store, table.spec.prefix)
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
    [instant] = leftovers.begun(table.store, table.spec.prefix)
    assert any(instant in key for key in files(table))
    table.upsert(replace(table.spec, owner="second", lease_wait_seconds=60))
    assert leftovers.begun(table.store, table.spec.prefix) == []
    assert not any(instant in key for key in files(table))
    first.wake()


def assert_that_the_next_run_leaves_nothing(table: LakeTable) -> None:
    before = notes(table)
    table.deliver([event(9, "c", 900)])
    table.upsert()
    assert leftovers.begun(table.store, table.spec.prefix) == []
    assert notes(table) == {**before, 9: None}
    there = [item.key for item in table.store.scan(f"{table.spec.prefix}.hoodie/.temp/") if ".marker." in item.key]
    assert there == []
