"""upsert: what was landed since the table's checkpoint, folded into the Hudi table (design, section 5).

The checkpoint is part of the commit that applies it, so a run that is cut off anywhere has applied all of
its batch or nothing. One writer at a time, by lease.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from pyspark import StorageLevel
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract import dead_letters, lease, names, schema, timeline
from cdc_lake.contract.chain import Chain
from cdc_lake.contract.errors import SchemaUnexplainedError, TooManyDeadLettersError, TopicRecreatedError
from cdc_lake.contract.manifest import Manifest
from cdc_lake.contract.position import ORDER_COLUMN
from cdc_lake.contract.store import ObjectStore, S3Location
from cdc_lake.jobs import raw_reader
from cdc_lake.jobs.decode import DRIFT, PLACE, REASON, decode
from cdc_lake.jobs.executors import contract_errors
from cdc_lake.jobs.hudi import HudiTable


@dataclass(frozen=True)
class UpsertSpec:
    """Which topic goes into which table.

    `source_table` is `schema.table`, whose captured schema explains the records. `dead_letter_limit` is the
    number of unreadable records in one batch above which the run stops: then the fault is not in the records.
    """

    location: S3Location
    pipeline: str
    topic: str
    source_table: str
    table: str
    key: Sequence[str]
    partition_by: Sequence[str] = ()
    dead_letter_limit: int = 1000
    lease_seconds: float = lease.SECONDS
    lease_wait_seconds: float = lease.WAIT_SECONDS
    scheme: str = "s3a"
    owner: str = field(default_factory=lambda: str(uuid.uuid4()))

    @property
    def prefix(self) -> str:
        """The table's prefix in the bucket."""
        return names.lake_prefix(self.pipeline, self.table)

    def uri(self) -> str:
        """The table's absolute URI for Spark."""
        return f"{self.scheme}://{self.location.bucket}/{self.prefix.rstrip('/')}"


@dataclass(frozen=True)
class UpsertReport:
    """What one run applied; `instant` is None where nothing was new."""

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


def new_manifests(store: ObjectStore, spec: UpsertSpec) -> list[Manifest]:
    """The manifests that the table has not applied yet, oldest first; cheap where there are none."""
    commit = timeline.last_commit(store, spec.prefix)
    applied = None if commit is None else commit.checkpoint
    manifests = list(Chain(store, spec.pipeline, spec.topic).since(applied.manifest if applied else 0))
    if applied is not None and any(manifest.topic_id != applied.topic_id for manifest in manifests):
        raise TopicRecreatedError(
            f"table {spec.table} was built from topic {spec.topic} with id {applied.topic_id}, and what is landed now "
            f"comes from another topic of that name; nothing was applied: `cdc-lake reset {spec.pipeline}`"
        )
    return manifests


def run(spark: SparkSession, spec: UpsertSpec) -> UpsertReport:
    """Apply all new manifests in one commit; nothing new is no error.

    Raises LeaseHeldError, LeaseLostError, ObjectDamagedError, SchemaUnexplainedError, TooManyDeadLettersError,
    ManifestGapError and TopicRecreatedError; nothing is committed then.
    """
    started = time.monotonic()
    store = spec.location.store()
    with lease.held(
        store,
        names.lease_key(spec.pipeline, spec.table),
        spec.owner,
        spec.lease_seconds,
        spec.lease_wait_seconds,
    ) as held:
        manifests = new_manifests(store, spec)
        if not manifests:
            return UpsertReport(None, 0, 0, 0, 0, 0, 0, 0, 0, time.monotonic() - started)
        table_schema = schema.latest(store, spec.pipeline, spec.source_table)
        checkpoint = timeline.Checkpoint(
            topic=spec.topic,
            topic_id=manifests[-1].topic_id,
            manifest=manifests[-1].number,
            schema_version=table_schema.version,
            watermark=manifests[-1].watermark,
        )
        records = raw_reader.read(spark, spec.location, manifests)
        with _kept(decode(records, table_schema)) as decoded, contract_errors():
            letters = _dead_letters(decoded, spec)
            with _kept(keep_latest(decoded.where(F.col(REASON).isNull()), spec.key)) as rows:
                keys = rows.count()
                dead_letters.put(store, spec.pipeline, letters)
                held.check()
                HudiTable(spec.table, spec.uri(), spec.key, spec.partition_by).upsert(rows, checkpoint)
        # Still under the lease: after it, the newest commit can be another writer's.
        commit = timeline.last_commit(store, spec.prefix)
        if commit is None or commit.checkpoint != checkpoint:
            raise RuntimeError(f"Hudi reported success, but {spec.uri()} has no commit with checkpoint {checkpoint}")
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
    )


@contextmanager
def _kept(rows: DataFrame) -> Iterator[DataFrame]:
    """Rows that are computed once, however often the block asks for them."""
    kept = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield kept
    finally:
        kept.unpersist()


def keep_latest(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """One row a key: the newest by the order of design section 5; equal orders are the same change twice."""
    newest = Window.partitionBy(*key).orderBy(F.col(ORDER_COLUMN).desc(), F.col("offset").desc())
    return rows.withColumn("_rank", F.row_number().over(newest)).where("_rank = 1").drop("_rank", REASON, *PLACE)


def _dead_letters(decoded: DataFrame, spec: UpsertSpec) -> list[dead_letters.DeadLetter]:
    """The batch's unreadable records. Raises where they show a changed schema, or are too many."""
    bad = decoded.where(F.col(REASON).isNotNull()).select(*PLACE, REASON).limit(spec.dead_letter_limit + 1).collect()
    for row in bad:
        if row[REASON].startswith(DRIFT):
            raise SchemaUnexplainedError(
                f"topic {spec.topic}, partition {row['partition']}, offset {row['offset']}: {row[REASON]}. The source "
                f"table {spec.source_table} changed; nothing was applied: materialise {spec.pipeline}/source/"
                f"{spec.table} to capture its schema, then this again"
            )
    if len(bad) > spec.dead_letter_limit:
        raise TooManyDeadLettersError(
            f"more than {spec.dead_letter_limit} records of topic {spec.topic} can't be read, the first one because "
            f"{bad[0][REASON]} (partition {bad[0]['partition']}, offset {bad[0]['offset']}); nothing was applied: this "
            "is rather a wrong schema or connector setting than bad records"
        )
    return [
        dead_letters.DeadLetter.of(
            spec.topic, row["partition"], row["offset"], row[REASON], bytes(row["value"]), row["object"]
        )
        for row in bad
    ]
