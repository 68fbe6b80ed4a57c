"""Failed writes: incomplete commits, and files written after the rollback of their commit."""

from __future__ import annotations

from io import BytesIO

import fastavro
import pytest

from cdc_lake.contract.errors import ObjectDamagedError
from cdc_lake.contract.table import failed_writes
from cdc_lake.contract.table.timeline import last_commit
from cdc_lake_tests.helpers.memory_store import MemoryStore
from cdc_lake_tests.unit.contract.table.timeline_files import HOODIE, TABLE, commit, rollback

FIRST, SECOND, THIRD, FOURTH = (f"2026010{day}000000000" for day in (1, 2, 3, 4))
FILE = "8f3b-0_0-24-41_{}.parquet"


def plan(instant: str) -> bytes:
    """Return the plan of a rollback."""
    body = BytesIO()
    of = {"type": "record", "name": "Info", "fields": [{"name": "commitTime", "type": "string"}]}
    schema = {"type": "record", "name": "Plan", "fields": [{"name": "instantToRollback", "type": ["null", of]}]}
    fastavro.writer(body, schema, [{"instantToRollback": {"commitTime": instant}}])
    return body.getvalue()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def marker(store: MemoryStore, instant: str, partition: str = "") -> tuple[str, str]:
    """Write a data file and its marker; return their keys."""
    name = f"{partition}{FILE.format(instant)}"
    file, mark = f"{TABLE}{name}", f"{HOODIE}.temp/{instant}/{name}.marker.CREATE"
    store.write(file, b"PAR1")
    store.write(mark, b"")
    return file, mark


def test_incomplete_commits_are_found(store: MemoryStore) -> None:
    assert failed_writes.incomplete_commits(store, TABLE) == []
    for name in ("commit.requested", "inflight", "commit"):
        store.write(f"{HOODIE}{FIRST}.{name}", commit(1))
    store.write(f"{HOODIE}{THIRD}.commit.requested", b"")
    store.write(f"{HOODIE}{SECOND}.replacecommit.inflight", b"")
    store.write(f"{HOODIE}{FOURTH}.clean.inflight", b"")
    store.write(f"{HOODIE}{FOURTH}.commit.requested-5b1c9e54", b"")
    assert failed_writes.incomplete_commits(store, TABLE) == [SECOND, THIRD]


def test_the_commit_of_an_interrupted_rollback_is_incomplete(store: MemoryStore) -> None:
    """The rollback may already have removed the commit from the timeline."""
    store.write(f"{HOODIE}{SECOND}.rollback.requested", plan(FIRST))
    store.write(f"{HOODIE}{SECOND}.rollback.inflight", b"")
    assert failed_writes.incomplete_commits(store, TABLE) == [FIRST]
    store.write(f"{HOODIE}{SECOND}.rollback", rollback(SECOND, FIRST))
    assert failed_writes.incomplete_commits(store, TABLE) == []


def test_files_written_after_their_rollback_are_deleted(store: MemoryStore) -> None:
    stray, stray_marker = marker(store, FIRST)
    nested, nested_marker = marker(store, FIRST, "country=PL/")
    store.write(f"{HOODIE}{SECOND}.rollback", rollback(SECOND, FIRST))
    assert failed_writes.delete_rolled_back_files(store, TABLE) == 2
    assert not {stray, stray_marker, nested, nested_marker} & set(store.objects)
    assert failed_writes.delete_rolled_back_files(store, TABLE) == 0


@pytest.mark.parametrize("state", ["commit.requested", "inflight", "commit"])
def test_files_of_pending_and_completed_commits_are_kept(store: MemoryStore, state: str) -> None:
    file, _ = marker(store, SECOND)
    store.write(f"{HOODIE}{SECOND}.{state}", commit(1))
    store.write(f"{HOODIE}{THIRD}.rollback", rollback(THIRD, FIRST))
    assert failed_writes.delete_rolled_back_files(store, TABLE) == 0
    assert file in store.objects


def test_files_without_a_rollback_of_their_commit_are_kept(store: MemoryStore) -> None:
    """Their commit may have been archived."""
    file, _ = marker(store, FIRST)
    assert failed_writes.delete_rolled_back_files(store, TABLE) == 0
    store.write(f"{HOODIE}{THIRD}.rollback", rollback(THIRD, SECOND))
    assert failed_writes.delete_rolled_back_files(store, TABLE) == 0
    assert file in store.objects


def test_a_commit_completed_after_its_rollback_is_rejected_as_checkpoint(store: MemoryStore) -> None:
    store.write(f"{HOODIE}{FIRST}.commit", commit(1))
    store.write(f"{HOODIE}{THIRD}.rollback", rollback(THIRD, SECOND))
    assert last_commit(store, TABLE) is not None
    store.write(f"{HOODIE}{SECOND}.commit", commit(2))
    with pytest.raises(ObjectDamagedError, match=f"commit {SECOND} was completed after its writer lost the lease"):
        last_commit(store, TABLE)
    # The commit of the next writer contains the same changes.
    store.write(f"{HOODIE}{FOURTH}.commit", commit(3))
    found = last_commit(store, TABLE)
    assert found is not None
    assert found.instant == FOURTH
