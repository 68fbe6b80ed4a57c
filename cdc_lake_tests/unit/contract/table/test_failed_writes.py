"""Failed writers: incomplete commits, and files that were written after their rollback."""

from __future__ import annotations

import pytest

from cdc_lake.contract.errors import ObjectDamagedError
from cdc_lake.contract.table import failed_writes
from cdc_lake.contract.table.timeline import last_commit
from cdc_lake_tests.memory_store import MemoryStore
from cdc_lake_tests.unit.contract.table.test_timeline import HOODIE, TABLE, commit

FIRST, SECOND, THIRD, FOURTH = (f"2026010{day}000000000" for day in (1, 2, 3, 4))
FILE = "8f3b-0_0-24-41_{}.parquet"


def rollback(*instants: str) -> bytes:
    """Return text as Avro stores it: its length, then the text."""
    return b"Obj\x01 schema \x22" + b"\x22".join(instant.encode() for instant in instants) + b"\x00"


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def marker(store: MemoryStore, instant: str, partition: str = "") -> tuple[str, str]:
    """A data file and its marker; their keys."""
    name = f"{partition}{FILE.format(instant)}"
    file, mark = f"{TABLE}{name}", f"{HOODIE}.temp/{instant}/{name}.marker.CREATE"
    store.write(file, b"PAR1")
    store.write(mark, b"")
    return file, mark


def test_what_was_begun_and_not_completed_is_found(store: MemoryStore) -> None:
    assert failed_writes.incomplete_commits(store, TABLE) == []
    for name in ("commit.requested", "inflight", "commit"):
        store.write(f"{HOODIE}{FIRST}.{name}", commit(1))
    store.write(f"{HOODIE}{THIRD}.commit.requested", b"")
    store.write(f"{HOODIE}{SECOND}.replacecommit.inflight", b"")
    store.write(f"{HOODIE}{FOURTH}.clean.inflight", b"")
    store.write(f"{HOODIE}{FOURTH}.commit.requested-5b1c9e54", b"")
    assert failed_writes.incomplete_commits(store, TABLE) == [SECOND, THIRD]


def test_a_rollback_that_was_cut_off_is_begun_still(store: MemoryStore) -> None:
    """Its commit can be gone from the timeline already."""
    store.write(f"{HOODIE}{SECOND}.rollback.requested", rollback(FIRST))
    store.write(f"{HOODIE}{SECOND}.rollback.inflight", b"")
    assert failed_writes.incomplete_commits(store, TABLE) == [FIRST]
    store.write(f"{HOODIE}{SECOND}.rollback", rollback(SECOND, FIRST))
    assert failed_writes.incomplete_commits(store, TABLE) == []


def test_files_that_were_written_after_their_rollback_are_swept(store: MemoryStore) -> None:
    stray, its_marker = marker(store, FIRST)
    nested, its_own_marker = marker(store, FIRST, "country=PL/")
    store.write(f"{HOODIE}{SECOND}.rollback", rollback(SECOND, FIRST))
    assert failed_writes.delete_rolled_back_files(store, TABLE) == 2
    assert not {stray, its_marker, nested, its_own_marker} & set(store.objects)
    assert failed_writes.delete_rolled_back_files(store, TABLE) == 0


@pytest.mark.parametrize("state", ["commit.requested", "inflight", "commit"])
def test_what_a_writer_has_under_way_or_committed_is_not_swept(store: MemoryStore, state: str) -> None:
    file, _ = marker(store, SECOND)
    store.write(f"{HOODIE}{SECOND}.{state}", commit(1))
    store.write(f"{HOODIE}{THIRD}.rollback", rollback(THIRD, FIRST))
    assert failed_writes.delete_rolled_back_files(store, TABLE) == 0
    assert file in store.objects


def test_what_no_rollback_tells_of_is_not_swept(store: MemoryStore) -> None:
    """The commit can be archived."""
    file, _ = marker(store, FIRST)
    assert failed_writes.delete_rolled_back_files(store, TABLE) == 0
    store.write(f"{HOODIE}{THIRD}.rollback", rollback(THIRD, SECOND))
    assert failed_writes.delete_rolled_back_files(store, TABLE) == 0
    assert file in store.objects


def test_a_commit_that_was_completed_after_its_rollback_is_no_checkpoint(store: MemoryStore) -> None:
    store.write(f"{HOODIE}{FIRST}.commit", commit(1))
    store.write(f"{HOODIE}{THIRD}.rollback", rollback(THIRD, SECOND))
    assert last_commit(store, TABLE) is not None
    store.write(f"{HOODIE}{SECOND}.commit", commit(2))
    with pytest.raises(ObjectDamagedError, match=f"commit {SECOND} .* was completed by a writer that had lost"):
        last_commit(store, TABLE)
    # The next writer's own commit applied what that one did.
    store.write(f"{HOODIE}{FOURTH}.commit", commit(3))
    found = last_commit(store, TABLE)
    assert found is not None
    assert found.instant == FOURTH
