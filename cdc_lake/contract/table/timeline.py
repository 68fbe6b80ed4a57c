"""A Hudi table's checkpoint: the last applied manifest, stored in the metadata of the commit that applied it.

This module reads the timeline's files without Spark, so that a run with nothing to apply takes milliseconds.
The tables are written as version 6, whose completed commits are JSON files `.hoodie/<instant>.<action>`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict

from cdc_lake.contract.errors import ObjectDamagedError, parse_fault, reset_advice
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import ObjectStore, StoredObject
from cdc_lake.contract.table import failed_writes
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.contract.table.timeline_files import COMMITS

CHECKPOINT_KEY = "cdc_lake.checkpoint"
RAW_BYTES_KEY = "cdc_lake.raw_bytes"
"""The bytes of the raw objects that a commit applied. Table services do not copy it to their commits."""


class Checkpoint(BaseModel):
    """The records that are applied as of a commit: those of the manifests up to `manifest` of one topic."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    topic: str
    topic_id: str
    manifest: int
    attempt: str | None = None
    """The manifest's attempt: another manifest can have the same number after manifests were removed."""
    schema_version: int
    watermark: Watermark | None = None
    purged_to: str | None = None
    """The newest change (event_order.ORDER_COLUMN) whose tombstone was purged: an older change of a key that is not
    in the table may belong to a purged key."""
    purged_before_ms: int | None = None
    """The latest commit time, by the source's clock, of changes that a purge can have seen: a change committed later
    does not belong to a purged key, for any LSN. None if no purge recorded it."""


@dataclass(frozen=True)
class Commit:
    """A completed commit: its instant, checkpoint, write statistics, and Hudi's operation (`upsert`, `compact` …).

    `raw_bytes` are the bytes of the raw objects that it applied; None if it applied no manifest, and for a commit of an
    earlier release.
    """

    instant: str
    checkpoint: Checkpoint | None
    rows_written: int
    inserts: int
    updates: int
    bytes_written: int
    files_written: int
    operation: str = ""
    raw_bytes: int | None = None


def write_amplification(commits: Sequence[Commit]) -> float | None:
    """Return the bytes that commits, oldest first, wrote to the table for each byte of the raw objects they applied.

    Commits of table services and other commits without raw objects count with their bytes. The commits before the
    first one whose raw bytes are known are left out. Returns None if none are known.
    """
    first = next((number for number, each in enumerate(commits) if each.raw_bytes is not None), len(commits))
    counted = commits[first:]
    raw_bytes = sum(each.raw_bytes or 0 for each in counted)
    return sum(each.bytes_written for each in counted) / raw_bytes if raw_bytes else None


def last_commit(store: ObjectStore, table_prefix: str) -> Commit | None:
    """Return the newest completed commit that carries a checkpoint; None for a table without commits.

    Each commit of cdc-lake's jobs carries a checkpoint, so that archiving never removes the only one.
    Raises ObjectDamagedError for a table with commits but no checkpoint (another program wrote it), for a commit that
    cannot be read, and for one that was completed after its files were rolled back.
    """
    names = [item.key for item in store.scan(f"{table_prefix}.hoodie/", recursive=False)]
    instants = sorted((key for key in names if key.rpartition(".")[2] in COMMITS), key=_instant, reverse=True)
    for key in instants:
        stored = store.get(key)
        if stored is None:
            continue  # archived between the listing and now; an older one cannot be the newest
        commit = _commit(stored)
        if commit.checkpoint is not None:
            _require_kept(store, table_prefix, key, [name.rpartition("/")[2] for name in names])
            return commit
    if instants:
        raise ObjectDamagedError(
            f"Cannot read the Hudi table at {table_prefix}: none of its commits contains a checkpoint. Another program "
            "wrote it, or its timeline is damaged. Move it to another prefix, or "
            f"{reset_advice(object_names.pipeline_of(table_prefix))}."
        )
    return None


def commit_at(store: ObjectStore, table_prefix: str, instant: str) -> Commit:
    """Return a completed commit. Raises ObjectDamagedError if it is missing or cannot be read."""
    for action in COMMITS:
        stored = store.get(f"{table_prefix}.hoodie/{instant}.{action}")
        if stored is not None:
            return _commit(stored)
    raise ObjectDamagedError(
        f"Cannot read commit {instant} of the Hudi table at {table_prefix}: it is not in the timeline. Run this again."
    )


def partitions_after(store: ObjectStore, table_prefix: str, instant: str) -> tuple[set[str], str] | None:
    """Return the partitions' folders that completed commits after `instant` wrote to, and the newest commit's instant.

    Returns None if the timeline no longer has `instant`: later commits may be archived too.
    """
    listed = [item.key for item in store.scan(f"{table_prefix}.hoodie/", recursive=False)]
    commits = {_instant(key): key for key in listed if key.rpartition(".")[2] in COMMITS}
    if instant not in commits:
        return None
    folders: set[str] = set()
    for key in (commits[at] for at in commits if at > instant):
        stored = store.get(key)
        if stored is None:
            return None
        folders |= _partitions(stored)
    return folders, max(commits)


def replaced_groups(store: ObjectStore, table_prefix: str) -> set[tuple[str, str]]:
    """Return the file groups that a clustering or an overwrite has replaced, as (partition's folder, file id).

    Their files are deleted before Hudi archives the commit that replaced them. Raises ObjectDamagedError.
    """
    found: set[tuple[str, str]] = set()
    for item in store.scan(f"{table_prefix}.hoodie/", recursive=False):
        stored = store.get(item.key) if item.key.endswith(".replacecommit") else None
        if stored is None:
            continue
        try:
            replaced = json.loads(stored.body)["partitionToReplaceFileIds"]
            found |= {(folder, file) for folder, files in replaced.items() for file in files}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _unreadable(stored, error) from error
    return found


def _require_kept(store: ObjectStore, table_prefix: str, key: str, names: list[str]) -> None:
    """Raise ObjectDamagedError if the newest commit (the object `key`) was rolled back before it was completed.

    A writer that was paused between Hudi's last two requests can complete a commit that the next writer has rolled
    back. As long as no newer commit exists, its checkpoint covers data that are deleted.
    """
    instant = _instant(key)
    if failed_writes.rolled_back(store, table_prefix, {instant}, names):
        raise ObjectDamagedError(
            f"Cannot use Hudi table {table_prefix}: commit {instant} was completed after its writer lost the lease and "
            f"the commit's files were rolled back, so records are missing. Delete object {key} to apply the records "
            f"again, or {reset_advice(object_names.pipeline_of(table_prefix))}."
        )


def _partitions(stored: StoredObject) -> set[str]:
    try:
        return set(json.loads(stored.body)["partitionToWriteStats"])
    except (ValueError, KeyError, TypeError) as error:
        raise _unreadable(stored, error) from error


def _instant(key: str) -> str:
    return key.rpartition("/")[2].partition(".")[0]


def _commit(stored: StoredObject) -> Commit:
    try:
        return _parsed(_instant(stored.key), json.loads(stored.body))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise _unreadable(stored, error) from error


def _unreadable(stored: StoredObject, error: Exception) -> ObjectDamagedError:
    return ObjectDamagedError(
        f"Cannot read the Hudi commit {stored.key}: it is damaged or not in the format of table version 6 "
        f"({parse_fault(error)}). Nothing was applied. Restore the object. Or copy the table elsewhere if its history "
        f"is needed, and {reset_advice(object_names.pipeline_of(stored.key))}."
    )


def _parsed(instant: str, body: dict[str, Any]) -> Commit:
    stats = [stat for group in body["partitionToWriteStats"].values() for stat in group]
    extra = body.get("extraMetadata", {})
    text, raw_bytes = extra.get(CHECKPOINT_KEY), extra.get(RAW_BYTES_KEY)
    return Commit(
        instant=instant,
        checkpoint=None if text is None else Checkpoint.model_validate_json(text),
        rows_written=sum(stat["numWrites"] for stat in stats),
        inserts=sum(stat["numInserts"] for stat in stats),
        updates=sum(stat["numUpdateWrites"] for stat in stats),
        bytes_written=sum(stat["totalWriteBytes"] for stat in stats),
        files_written=len(stats),
        operation=str(body.get("operationType") or "").lower(),
        raw_bytes=None if raw_bytes is None else int(raw_bytes),
    )
