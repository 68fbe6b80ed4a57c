"""upsert: apply the manifests after the table's checkpoint to the Hudi table.

The commit that applies a batch also carries the checkpoint, so an interrupted run has applied the whole batch or
nothing. A lease admits one writer at a time.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import TopicRecreatedError, reset_advice
from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.contract.table import lease, timeline
from cdc_lake.contract.table.event_order import ORDER_COLUMN, Position
from cdc_lake.jobs.apply import dead_letter_writer, raw_reader
from cdc_lake.jobs.apply.decode import REASON, decode
from cdc_lake.jobs.apply.fold import cached, fold
from cdc_lake.jobs.apply.record_fields import RecordParser
from cdc_lake.jobs.apply.schema_migration import Migration, migration
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.executor_errors import contract_errors
from cdc_lake.jobs.lake_table import LakeTable, Operation

ROWS_PER_FILE = 125_000
"""Rows in one file of a first load. Hudi assumes 1,024 bytes per row and 120 MB per file for a new table."""


@dataclass(frozen=True)
class UpsertReport:
    """The result of one run; `commit` is None if there was nothing to apply.

    `schema_changes` describes the migration before the batch, one phrase for each column.
    """

    commit: timeline.Commit | None
    manifests: int = 0
    events: int = 0
    keys: int = 0
    dead_letters: int = 0
    seconds: float = 0.0
    schema_changes: Sequence[str] = ()
    operation: str = ""
    """Hudi's operation for the batch: bulk_insert for the first load, then upsert; "" if no batch was applied."""


def new_version(store: ObjectStore, spec: UpsertSpec, commit: timeline.Commit | None) -> int | None:
    """Return the schema version that the table must be migrated to; None if no migration is needed.

    `commit` is the table's newest commit.
    """
    if commit is None or commit.checkpoint is None:
        return None
    versions = captured_schema.require_versions(store, spec.pipeline, spec.source_table)
    changed = migration(versions, commit.checkpoint.schema_version) is not None
    return versions[-1].version if changed else None


def new_manifests(store: ObjectStore, spec: UpsertSpec, commit: timeline.Commit | None) -> list[Manifest]:
    """Return the manifests that the table has not applied yet, oldest first.

    `commit` is the table's newest commit. Raises TopicRecreatedError, and what Chain.since() raises.
    """
    applied = None if commit is None else commit.checkpoint
    chain = Chain(store, spec.pipeline, spec.topic)
    manifests = list(chain.since(applied.manifest, applied.attempt) if applied else chain.since(0))
    # Only a manifest that opens an epoch may continue with a re-created topic.
    opened = next((n for n, manifest in enumerate(manifests) if manifest.opens is not None), len(manifests))
    if applied is not None and any(manifest.topic_id != applied.topic_id for manifest in manifests[:opened]):
        raise TopicRecreatedError(
            f"Cannot update table {spec.table}: it was built from topic {spec.topic} with id {applied.topic_id}, and "
            "the new manifests come from another topic of that name. Nothing was applied. To "
            f"rebuild the table, {reset_advice(spec.pipeline)}."
        )
    return [each for each in manifests if spec.until is None or each.number <= spec.until]


@contract_errors()
def run(spark: SparkSession, spec: UpsertSpec) -> UpsertReport:
    """Apply all new manifests in one commit; without new manifests, return an empty report.

    Raises LeaseHeldError, LeaseLostError, ObjectDamagedError, UnknownColumnsError, TooManyDeadLettersError,
    ManifestGapError and TopicRecreatedError; nothing is committed then.
    """
    started = time.monotonic()
    store = spec.location.store()
    with spec.writer_lease(store) as held:
        failpoints.reached("upsert.after_lease")
        table = spec.lake_table(store)
        previous = table.recover(spark)
        applied = None if previous is None else previous.checkpoint
        manifests = new_manifests(store, spec, previous)
        versions = captured_schema.require_versions(store, spec.pipeline, spec.source_table)
        change = None if applied is None else migration(versions, applied.schema_version)
        if not manifests and change is None:
            return UpsertReport(None, seconds=time.monotonic() - started)
        if applied is not None and change is not None:
            applied = applied.model_copy(update={"schema_version": versions[-1].version})
            previous = _migrate(spark, table, change, applied, held, previous)
            if not manifests:
                seconds = time.monotonic() - started
                return UpsertReport(previous, seconds=seconds, schema_changes=change.describe())
        checkpoint = timeline.Checkpoint(
            topic=spec.topic,
            topic_id=manifests[-1].topic_id,
            manifest=manifests[-1].number,
            attempt=manifests[-1].attempt,
            schema_version=versions[-1].version,
            watermark=manifests[-1].watermark,
            purged_to=None if applied is None else applied.purged_to,
            purged_before_ms=None if applied is None else applied.purged_before_ms,
        )
        read, boundary = _newest_snapshot(store, spec, manifests) if previous is None else (manifests, None)
        epochs = {manifest.epoch for manifest in read}
        records = raw_reader.read(spark, spec.location, read, RecordParser.of(versions, epochs))
        decoded = decode(records, versions, spec.values, epochs)
        if boundary is not None:
            decoded = decoded.where(F.col(REASON).isNotNull() | (F.col(ORDER_COLUMN) >= boundary.encode()))

        def stored() -> DataFrame | None:
            return None if applied is None else table.rows(spark)

        with fold(decoded, spec.key, spec.partition_by, stored, applied) as folded:
            bad = folded.bad
            letters = [] if bad is None else dead_letter_writer.store_values(spark, bad, read, spec)
            keys = folded.newest.count() if folded.keys is None else folded.keys
            failpoints.reached("upsert.before_dead_letters")
            found = {letter.id for letter in letters}
            if previous is None:
                found |= dead_letters.reopen_replayed(store, spec.pipeline, spec.topic, manifests[-1].epoch, found)
            dead_letters.put(store, spec.pipeline, letters)
            held.check()
            failpoints.reached("upsert.before_write")
            # Hudi rejects a bulk insert without rows.
            bulk = previous is None and keys > 0
            operation: Operation = "bulk_insert" if bulk else "upsert"
            # A bulk insert reads the rows twice: first to find the ranges.
            with cached(folded.newest) if bulk and folded.shuffled else nullcontext(folded.newest) as rows:
                commit = table.write(
                    _in_ranges(rows, keys, [*spec.partition_by, *spec.key]) if bulk else rows,
                    checkpoint,
                    held,
                    operation,
                    previous=previous,
                    raw_bytes=sum(manifest.size for manifest in read),
                )
        failpoints.reached("upsert.after_commit")
    return UpsertReport(
        commit=commit,
        manifests=len(manifests),
        events=sum(manifest.records for manifest in manifests),
        keys=keys,
        dead_letters=len(found),
        seconds=time.monotonic() - started,
        schema_changes=() if change is None else change.describe(),
        operation=operation,
    )


def _newest_snapshot(
    store: ObjectStore, spec: UpsertSpec, manifests: list[Manifest]
) -> tuple[list[Manifest], Position | None]:
    """Return the manifests that a first load reads, and the position of the first row that it keeps.

    They are those of the newest epoch if its snapshot is complete, because the snapshot has all rows of the source;
    otherwise all. Earlier records, and those of an interrupted attempt at the snapshot, would add rows that were
    deleted while nothing was streamed: no record reports that, and the sweep of a resnapshot deletes such rows only
    from the tables that existed then.
    """
    newest = manifests[-1].epoch
    completion = Epochs(store, spec.pipeline).completion(newest) if newest else None
    if completion is None:
        return manifests, None
    boundary = Position(newest, streamed=False, lsn=completion.snapshot_lsn or 0)
    return [manifest for manifest in manifests if manifest.epoch == newest], boundary


def _in_ranges(rows: DataFrame, count: int, columns: Sequence[str]) -> DataFrame:
    """Divide the rows of a first load into ranges of partition and key: one Spark partition for each file.

    Later batches of neighbouring keys, such as newly inserted ones, then rewrite few files.
    """
    files = max(1, math.ceil(count / ROWS_PER_FILE))
    return rows.repartitionByRange(files, *columns)


def _migrate(
    spark: SparkSession,
    table: LakeTable,
    change: Migration,
    checkpoint: timeline.Checkpoint,
    held: lease.Lease,
    previous: timeline.Commit | None,
) -> timeline.Commit:
    """Migrate the stored rows to the newest schema version, in a commit that applies no manifest."""
    stored = table.rows(spark)
    rows = change.rows(stored if change.rewrites else stored.limit(0))
    operation: Operation = "insert_overwrite_table" if change.rewrites else "upsert"
    held.check()
    return table.write(rows, checkpoint, held, operation, previous=previous)
