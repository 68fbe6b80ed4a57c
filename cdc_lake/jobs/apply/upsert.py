"""upsert: apply what was landed since the table's checkpoint to the Hudi table (design, section 5).

The commit that applies a batch also carries the checkpoint, so an interrupted run has applied the whole batch or
nothing. A lease admits one writer at a time.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import SchemaUnexplainedError, TooManyDeadLettersError, TopicRecreatedError
from cdc_lake.contract.objects import dead_letters, object_names
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.store import ObjectStore, S3Location
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.special_values import STRICT, ValueRules
from cdc_lake.contract.table import lease, timeline
from cdc_lake.jobs.apply import dead_letter_writer, raw_reader
from cdc_lake.jobs.apply.decode import OBJECT, OFFSET, PARTITION, REASON, RECORD_COLUMNS, UNKNOWN_FIELDS, VALUE, decode
from cdc_lake.jobs.apply.fold import cached, fold
from cdc_lake.jobs.apply.schema_migration import Migration, migration
from cdc_lake.jobs.executor_errors import contract_errors
from cdc_lake.jobs.hudi import recovery
from cdc_lake.jobs.hudi.writer import HudiTable, Operation, lake_columns


@dataclass(frozen=True)
class UpsertSpec:
    """A topic and the table to apply it to.

    `source_table` is `schema.table`, whose captured schema versions decode the records. With more than
    `dead_letter_limit` unreadable records in one batch the run fails: the cause is then probably not in the records.
    `until` is the last manifest to apply, one that was landed before the schema was captured: a record with a field of
    no version then becomes a dead letter. Without it, all manifests are applied, and such a field stops the run.
    """

    location: S3Location
    pipeline: str
    topic: str
    source_table: str
    table: str
    key: Sequence[str]
    partition_by: Sequence[str] = ()
    values: ValueRules = STRICT
    until: int | None = None
    dead_letter_limit: int = 1000
    lease_seconds: float = lease.SECONDS
    lease_wait_seconds: float = lease.WAIT_SECONDS
    scheme: str = "s3a"
    owner: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def prefix(self) -> str:
        """The table's prefix in the bucket."""
        return object_names.lake_prefix(self.pipeline, self.table)

    def uri(self) -> str:
        """The table's absolute URI for Spark."""
        return f"{self.scheme}://{self.location.bucket}/{self.prefix.rstrip('/')}"

    def hudi_table(self) -> HudiTable:
        """Return the table for writing."""
        return HudiTable(self.table, self.uri(), self.key, self.partition_by)

    def stored(self, spark: SparkSession) -> DataFrame:
        """Return the table's rows with the lake's columns."""
        rows = spark.read.format("hudi").load(self.uri())
        return rows.select(*lake_columns(rows))


@dataclass(frozen=True)
class UpsertReport:
    """What one run applied; `instant` is None where nothing was new.

    `schema_changes` describes the migration before the batch, one phrase for each column.
    """

    instant: str | None
    manifests: int
    events: int
    keys: int
    inserts: int
    updates: int
    dead_letters: int
    bytes_written: int
    files_written: int
    seconds: float
    schema_changes: Sequence[str] = ()


def new_manifests(store: ObjectStore, spec: UpsertSpec) -> list[Manifest]:
    """Return the manifests that the table has not applied yet, oldest first; cheap where there are none."""
    return _pending(store, spec)[1]


def new_version(store: ObjectStore, spec: UpsertSpec) -> int | None:
    """Return the schema version that the table must be migrated to, None where no migration is needed."""
    commit = timeline.last_commit(store, spec.prefix)
    if commit is None or commit.checkpoint is None:
        return None
    versions = captured_schema.require_versions(store, spec.pipeline, spec.source_table)
    changed = migration(versions, commit.checkpoint.schema_version) is not None
    return versions[-1].version if changed else None


def _pending(store: ObjectStore, spec: UpsertSpec) -> tuple[timeline.Checkpoint | None, list[Manifest]]:
    """Return the table's checkpoint, None for a table that does not exist, and the manifests after it."""
    commit = timeline.last_commit(store, spec.prefix)
    applied = None if commit is None else commit.checkpoint
    chain = Chain(store, spec.pipeline, spec.topic)
    manifests = list(chain.since(applied.manifest, applied.attempt) if applied else chain.since(0))
    # Only a manifest that opens an epoch may continue with a re-created topic.
    opened = next((n for n, manifest in enumerate(manifests) if manifest.opens is not None), len(manifests))
    if applied is not None and any(manifest.topic_id != applied.topic_id for manifest in manifests[:opened]):
        raise TopicRecreatedError(
            f"Cannot update table {spec.table}: it was built from topic {spec.topic} with id {applied.topic_id}, and "
            "the new manifests come from another topic of that name. Nothing was applied. Run `cdc-lake reset "
            f"{spec.pipeline}`."
        )
    return applied, [each for each in manifests if spec.until is None or each.number <= spec.until]


@contract_errors()
def run(spark: SparkSession, spec: UpsertSpec) -> UpsertReport:
    """Apply all new manifests in one commit; nothing new is no error.

    Raises LeaseHeldError, LeaseLostError, ObjectDamagedError, SchemaUnexplainedError, TooManyDeadLettersError,
    ManifestGapError and TopicRecreatedError; nothing is committed then.
    """
    started = time.monotonic()
    store = spec.location.store()
    with lease.held(
        store,
        object_names.lease_key(spec.pipeline, spec.table),
        spec.owner,
        spec.lease_seconds,
        spec.lease_wait_seconds,
    ) as held:
        failpoints.reached("upsert.after_lease")
        recovery.recover(spark, store, spec.prefix, spec.hudi_table())
        # After the recovery: a paused writer may have completed a commit meanwhile, whose checkpoint then counts.
        applied, manifests = _pending(store, spec)
        versions = captured_schema.require_versions(store, spec.pipeline, spec.source_table)
        change = None if applied is None else migration(versions, applied.schema_version)
        if not manifests and change is None:
            return UpsertReport(None, 0, 0, 0, 0, 0, 0, 0, 0, time.monotonic() - started)
        if applied is not None and change is not None:
            applied = applied.model_copy(update={"schema_version": versions[-1].version})
            moved = _migrate(spark, store, spec, change, applied, held)
            if not manifests:
                return UpsertReport(
                    moved.instant,
                    *(0, 0, 0, 0, 0, 0, moved.bytes_written, moved.files_written),
                    seconds=time.monotonic() - started,
                    schema_changes=change.describe(),
                )
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
        records = raw_reader.read(spark, spec.location, manifests)
        epochs = {manifest.epoch for manifest in manifests}
        decoded = decode(records, versions, spec.values, epochs)
        stored = partial(_stored, spark, spec, applied)
        with fold(decoded, spec.key, spec.partition_by, stored, applied) as (newest, bad):
            letters = _dead_letters(_without_superseded(spark, bad, manifests), spec, max(epochs))
            with cached(newest) as rows:
                keys = rows.count()
                failpoints.reached("upsert.before_dead_letters")
                dead_letters.put(store, spec.pipeline, letters)
                held.check()
                failpoints.reached("upsert.before_write")
                commit = recovery.write(store, spec.prefix, spec.hudi_table(), rows, checkpoint, held.secure)
        failpoints.reached("upsert.after_commit")
    return UpsertReport(
        instant=commit.instant,
        manifests=len(manifests),
        events=sum(manifest.records for manifest in manifests),
        keys=keys,
        inserts=commit.inserts,
        updates=commit.updates,
        dead_letters=len(letters),
        bytes_written=commit.bytes_written,
        files_written=commit.files_written,
        seconds=time.monotonic() - started,
        schema_changes=() if change is None else change.describe(),
    )


def _migrate(
    spark: SparkSession,
    store: ObjectStore,
    spec: UpsertSpec,
    change: Migration,
    checkpoint: timeline.Checkpoint,
    held: lease.Lease,
) -> timeline.Commit:
    """Migrate the stored rows to the newest schema version, in a commit that applies no manifest."""
    stored = spec.stored(spark)
    rows = change.rows(stored if change.rewrites else stored.limit(0))
    operation: Operation = "insert_overwrite_table" if change.rewrites else "upsert"
    held.check()
    return recovery.write(store, spec.prefix, spec.hudi_table(), rows, checkpoint, held.secure, operation)


def _stored(spark: SparkSession, spec: UpsertSpec, applied: timeline.Checkpoint | None) -> DataFrame | None:
    return None if applied is None else spec.stored(spark)


def _without_superseded(spark: SparkSession, bad: DataFrame, manifests: Sequence[Manifest]) -> DataFrame:
    """Drop the unreadable records of earlier epochs: the next epoch's snapshot re-sent their rows.

    Such records are often the reason for the snapshot. Their bytes stay in raw.
    """
    newest = max(manifest.epoch for manifest in manifests)
    superseded = [(item.key,) for manifest in manifests if manifest.epoch < newest for item in manifest.objects]
    if not superseded:
        return bad
    return bad.join(spark.createDataFrame(superseded, f"{OBJECT} string"), OBJECT, "left_anti")


def _dead_letters(decoded: DataFrame, spec: UpsertSpec, epoch: int) -> list[dead_letters.DeadLetter]:
    """Return the dead letters of a batch, all of one epoch. Raises for an unknown field, and for too many letters."""
    unreadable = decoded.where(F.col(REASON).isNotNull())
    position = (name for name in RECORD_COLUMNS if name != VALUE)  # values can be large: they stay on the executors
    bad = unreadable.select(*position, REASON).limit(spec.dead_letter_limit + 1).collect()
    for row in bad:
        if row[REASON].startswith(UNKNOWN_FIELDS) and spec.until is None:
            raise SchemaUnexplainedError(
                f"topic {spec.topic}, partition {row[PARTITION]}, offset {row[OFFSET]}: {row[REASON]}. The source "
                f"table {spec.source_table} changed. Nothing was applied. Materialise {spec.pipeline}/source/"
                f"{spec.table} to capture its schema, then run this again."
            )
    if len(bad) > spec.dead_letter_limit:
        raise TooManyDeadLettersError(
            f"Cannot read more than {spec.dead_letter_limit} records of topic {spec.topic}. The first one is in "
            f"partition {bad[0][PARTITION]} at offset {bad[0][OFFSET]}: {bad[0][REASON]}. Nothing was applied. The "
            "cause is probably a wrong schema or connector setting, not single records."
        )
    return dead_letter_writer.put_values(unreadable, spec.location, spec.pipeline, spec.topic, epoch) if bad else []
