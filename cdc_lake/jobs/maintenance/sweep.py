"""sweep: write tombstones for rows of the lake that a new snapshot of the source does not have.

A lost stream loses delete events. After the next epoch's snapshot is completely applied, a row whose newest change is
older than that snapshot has a key that the source no longer has: otherwise the snapshot or the stream after it would
contain the key. The same holds for rows that only an interrupted attempt at a snapshot read.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.errors import SnapshotNotAppliedError
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import timeline
from cdc_lake.contract.table.event_order import ORDER_COLUMN, Position
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.executor_errors import contract_errors


@dataclass(frozen=True)
class SweepSpec:
    """The table and the snapshot that was applied to it.

    `epoch`, `lsn` and `source_ts_ms` (milliseconds, by the source's clock) are those of the snapshot, `manifest` is the
    last manifest with its rows.
    """

    table: UpsertSpec
    epoch: int
    manifest: int
    lsn: int
    source_ts_ms: int

    @property
    def boundary(self) -> str:
        """The position of the snapshot's rows: a row that sorts before it is not in the snapshot."""
        return Position(self.epoch, streamed=False, lsn=self.lsn).encode()

    @property
    def tombstone(self) -> str:
        """The position of the tombstones: after everything older than the snapshot, and before the snapshot's rows.

        A snapshot row that arrives later then replaces the tombstone.
        """
        return Position(self.epoch, streamed=False, lsn=self.lsn - 1).encode()


@dataclass(frozen=True)
class SweepReport:
    """The result of one run; `commit` is the table's newest commit, None for a table that does not exist."""

    commit: timeline.Commit | None
    swept: int
    seconds: float


@contract_errors()
def run(spark: SparkSession, spec: SweepSpec) -> SweepReport:
    """Write tombstones for the rows that are older than the snapshot, in one commit that keeps the checkpoint.

    A second run changes nothing. Raises SnapshotNotAppliedError if the snapshot is not completely applied,
    LeaseHeldError and LeaseLostError; then nothing is committed.
    """
    started = time.monotonic()
    table = spec.table
    store = table.location.store()
    with table.writer_lease(store) as held:
        lake_table = table.lake_table(store)
        commit = lake_table.recover(spark)
        if commit is None or commit.checkpoint is None:
            return SweepReport(None, 0, time.monotonic() - started)
        require_applied(store, spec, commit.checkpoint)
        rows = tombstones(lake_table.rows(spark), spec)
        swept = rows.count()
        if swept:
            held.check()
            commit = lake_table.write(rows, commit.checkpoint, held, previous=commit)
    return SweepReport(commit, swept, time.monotonic() - started)


def require_applied(store: ObjectStore, spec: SweepSpec, checkpoint: timeline.Checkpoint) -> None:
    """Raise SnapshotNotAppliedError unless the table has applied the snapshot's last manifest, in the same epoch.

    Otherwise the sweep would delete rows whose snapshot event is not applied yet.
    """
    table, applied = spec.table, None
    if checkpoint.manifest:
        applied = Chain(store, table.pipeline, table.topic).read(checkpoint.manifest)
    if applied is not None and checkpoint.attempt not in (None, applied.attempt):
        found = f"has applied a manifest {applied.number} that is no longer in the chain"
    elif applied is None:
        found = "has not applied a manifest"
    elif applied.epoch != spec.epoch:
        found = f"has applied manifest {applied.number} of epoch {applied.epoch}"
    elif applied.number < spec.manifest:
        found = f"has applied manifest {applied.number}, and the snapshot ends in manifest {spec.manifest}"
    else:
        return
    raise SnapshotNotAppliedError(
        f"Cannot delete the rows of table {table.table} that the snapshot of epoch {spec.epoch} does not have: the "
        f"table {found}. No row was deleted. "
        f"Materialise {table.asset}, then run `cdc-lake resnapshot {table.pipeline}` again."
    )


def tombstones(stored: DataFrame, spec: SweepSpec) -> DataFrame:
    """Return tombstones for the rows that the snapshot does not have, with their last known values."""
    old = stored.where((F.col(ORDER_COLUMN) < spec.boundary) & ~F.col("__deleted"))
    changed = {
        "__deleted": F.lit(True),
        "__op": F.lit("d"),
        "__snapshot": F.lit("swept"),
        "__lsn": F.lit(spec.lsn).cast("bigint"),
        "__txid": F.lit(None).cast("bigint"),
        "__source_ts_ms": F.lit(spec.source_ts_ms).cast("bigint"),
        ORDER_COLUMN: F.lit(spec.tombstone),
    }
    return old.select(*(changed[name].alias(name) if name in changed else F.col(name) for name in old.columns))
