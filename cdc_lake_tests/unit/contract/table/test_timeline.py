"""The checkpoint in the newest commit; the commit is one that Hudi 1.2.0 wrote as table version 6."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cdc_lake.contract.errors import ObjectDamagedError
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.contract.table.timeline import CHECKPOINT_KEY, Checkpoint, last_commit
from cdc_lake_tests.memory_store import MemoryStore

RECORDED = Path(__file__).parent / "recorded" / "20261121004449958.commit"
TABLE = "lake/northwind/cdc_events/"
HOODIE = f"{TABLE}.hoodie/"
CHECKPOINT = Checkpoint(
    topic="msk.datalake.cdc_events",
    topic_id="tlI7SJ8oTvi+dUDluGG5zw",
    manifest=2,
    schema_version=1,
    watermark=Watermark(source_ts_ms=1795221884663, lsn=31268664),
)


def commit(manifest: int | None) -> bytes:
    """The recorded commit with another checkpoint, or none."""
    body = json.loads(RECORDED.read_text())
    del body["extraMetadata"][CHECKPOINT_KEY]
    if manifest is not None:
        body["extraMetadata"][CHECKPOINT_KEY] = CHECKPOINT.model_copy(update={"manifest": manifest}).model_dump_json()
    return json.dumps(body).encode()


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


def test_a_recorded_commit_is_read(store: MemoryStore) -> None:
    store.write(f"{HOODIE}{RECORDED.name}", RECORDED.read_bytes())
    found = last_commit(store, TABLE)
    assert found is not None
    assert (found.instant, found.checkpoint) == ("20261121004449958", CHECKPOINT)
    assert (found.rows_written, found.inserts, found.updates, found.files_written) == (829, 0, 1, 1)
    assert found.bytes_written == 508_688
    assert store.total == 2


def test_a_table_that_does_not_exist_has_none(store: MemoryStore) -> None:
    assert last_commit(store, TABLE) is None
    store.write(f"{HOODIE}hoodie.properties", b"")
    assert last_commit(store, TABLE) is None


def test_the_newest_completed_commit_counts(store: MemoryStore) -> None:
    store.write(f"{HOODIE}20260101000000000.commit", commit(1))
    store.write(f"{HOODIE}20260103000000000.commit", commit(3))
    store.write(f"{HOODIE}20260102000000000.deltacommit", commit(2))
    for unfinished in ("commit.requested", "inflight", "commit-5b1c9e54", "rollback", "clean", "savepoint"):
        store.write(f"{HOODIE}20260104000000000.{unfinished}", b"")
    store.write(f"{HOODIE}.aux/20260105000000000.commit", commit(9))
    store.write(f"{HOODIE}archived/20260105000000000.commit", commit(9))
    store.write("lake/northwind/cdc_events_2/.hoodie/20260106000000000.commit", commit(9))
    found = last_commit(store, TABLE)
    assert found is not None
    assert found.checkpoint is not None
    assert found.checkpoint.manifest == 3


def test_a_commit_of_a_table_service_without_a_checkpoint_is_passed_over(store: MemoryStore) -> None:
    store.write(f"{HOODIE}20260101000000000.commit", commit(1))
    store.write(f"{HOODIE}20260102000000000.replacecommit", commit(None))
    found = last_commit(store, TABLE)
    assert found is not None
    assert found.checkpoint is not None
    assert (found.instant, found.checkpoint.manifest) == ("20260101000000000", 1)


def test_a_table_of_somebody_elses_is_refused(store: MemoryStore) -> None:
    store.write(f"{HOODIE}20260101000000000.commit", commit(None))
    with pytest.raises(ObjectDamagedError, match="none carries a checkpoint: it was not written by cdc-lake"):
        last_commit(store, TABLE)


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"extraMetadata": {"cdc_lake.checkpoint": "{}"}}'])
def test_a_damaged_commit_is_said_by_name(store: MemoryStore, body: bytes) -> None:
    """Going back to an older one would apply manifests twice; that the newest can't be read must be said."""
    store.write(f"{HOODIE}20260101000000000.commit", commit(1))
    store.write(f"{HOODIE}20260102000000000.commit", body)
    with pytest.raises(ObjectDamagedError, match=f"commit {HOODIE}20260102000000000.commit"):
        last_commit(store, TABLE)
