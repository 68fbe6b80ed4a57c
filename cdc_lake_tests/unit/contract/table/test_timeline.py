"""The checkpoint in the newest commit, read from a commit that Hudi 1.2.0 wrote with table version 6."""

from __future__ import annotations

import json

import pytest

from cdc_lake.contract.errors import ObjectDamagedError
from cdc_lake.contract.table.timeline import RAW_BYTES_KEY, Commit, last_commit, write_amplification
from cdc_lake_tests.helpers.memory_store import MemoryStore
from cdc_lake_tests.unit.contract.table.timeline_files import CHECKPOINT, HOODIE, RECORDED, TABLE, commit, rollback


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_a_commit_written_by_hudi_is_read(store: MemoryStore) -> None:
    store.write(f"{HOODIE}{RECORDED.name}", RECORDED.read_bytes())
    found = last_commit(store, TABLE)
    assert found is not None
    assert (found.instant, found.checkpoint) == ("20261121004449958", CHECKPOINT)
    assert (found.rows_written, found.inserts, found.updates, found.files_written) == (829, 0, 1, 1)
    assert (found.bytes_written, found.operation, found.raw_bytes) == (508_688, "upsert", None)
    assert store.total == 2


def test_the_raw_bytes_of_a_commit_are_read(store: MemoryStore) -> None:
    body = json.loads(RECORDED.read_text())
    body["extraMetadata"][RAW_BYTES_KEY] = "4096"
    store.write(f"{HOODIE}{RECORDED.name}", json.dumps(body).encode())
    found = last_commit(store, TABLE)
    assert found is not None
    assert found.raw_bytes == 4096


def test_write_amplification_includes_table_services_after_the_first_known_raw_bytes() -> None:
    def written(size: int, raw_bytes: int | None) -> Commit:
        return Commit("20260101000000000", None, 1, 0, 1, size, 1, raw_bytes=raw_bytes)

    earlier_release, service = written(10_000, None), written(50, None)
    assert write_amplification([earlier_release, written(100, 10), service, written(30, 50)]) == 3.0
    assert write_amplification([earlier_release, service]) is None
    assert write_amplification([]) is None


def test_a_missing_table_has_no_commit(store: MemoryStore) -> None:
    assert last_commit(store, TABLE) is None
    store.write(f"{HOODIE}hoodie.properties", b"")
    assert last_commit(store, TABLE) is None


def test_the_newest_completed_commit_is_returned(store: MemoryStore) -> None:
    store.write(f"{HOODIE}20260101000000000.commit", commit(1))
    store.write(f"{HOODIE}20260103000000000.commit", commit(3))
    store.write(f"{HOODIE}20260102000000000.deltacommit", commit(2))
    for unfinished in ("commit.requested", "inflight", "commit-5b1c9e54", "clean", "savepoint"):
        store.write(f"{HOODIE}20260104000000000.{unfinished}", b"")
    store.write(f"{HOODIE}20260104000000000.rollback", rollback("20260104000000000", "20260103120000000"))
    store.write(f"{HOODIE}.aux/20260105000000000.commit", commit(9))
    store.write(f"{HOODIE}archived/20260105000000000.commit", commit(9))
    store.write("lake/northwind/cdc_events_2/.hoodie/20260106000000000.commit", commit(9))
    found = last_commit(store, TABLE)
    assert found is not None
    assert found.checkpoint is not None
    assert found.checkpoint.manifest == 3


def test_a_commit_of_a_table_service_without_checkpoint_is_skipped(store: MemoryStore) -> None:
    store.write(f"{HOODIE}20260101000000000.commit", commit(1))
    store.write(f"{HOODIE}20260102000000000.replacecommit", commit(None))
    found = last_commit(store, TABLE)
    assert found is not None
    assert found.checkpoint is not None
    assert (found.instant, found.checkpoint.manifest) == ("20260101000000000", 1)


def test_a_table_without_any_checkpoint_is_rejected(store: MemoryStore) -> None:
    store.write(f"{HOODIE}20260101000000000.commit", commit(None))
    with pytest.raises(
        ObjectDamagedError, match=r"none of its commits contains a checkpoint\. Another program wrote it"
    ):
        last_commit(store, TABLE)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"extraMetadata": {"cdc_lake.checkpoint": "{}"}}'])
def test_a_damaged_newest_commit_is_reported_with_its_name(store: MemoryStore, body: bytes) -> None:
    """Falling back to an older commit would apply manifests twice."""
    store.write(f"{HOODIE}20260101000000000.commit", commit(1))
    store.write(f"{HOODIE}20260102000000000.commit", body)
    with pytest.raises(ObjectDamagedError, match=f"commit {HOODIE}20260102000000000.commit"):
        last_commit(store, TABLE)
