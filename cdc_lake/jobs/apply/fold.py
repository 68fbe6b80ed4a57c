"""What decoded records come to: one row a key, the newest, and the records that can't be applied, with the reason."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from pyspark import StorageLevel
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.table.event_order import ORDER_COLUMN
from cdc_lake.contract.table.timeline import Checkpoint
from cdc_lake.jobs.apply import unchanged_toast
from cdc_lake.jobs.apply.decode import OFFSET, REASON, RECORD_COLUMNS


@contextmanager
def fold(
    decoded: DataFrame,
    key: Sequence[str],
    partition_by: Sequence[str],
    stored: Callable[[], DataFrame | None],
    applied: Checkpoint | None,
) -> Iterator[tuple[DataFrame, DataFrame]]:
    """Return the rows to write, one for each key, and the records that cannot be applied (RECORD_COLUMNS and REASON).

    `stored` returns the table's rows, None for a new table; it is called only where the batch does not suffice.
    `applied` is the table's checkpoint, which contains the purge position.
    """
    with cached(decoded) as read:
        resolved = unchanged_toast.resolve(read, stored, key)
        whole = resolved.withColumn(REASON, F.coalesce(REASON, *_unpartitionable(partition_by)))
        bad = whole.where(F.col(REASON).isNotNull())
        newest = newest_per_key(whole.where(F.col(REASON).isNull()), key)
        if applied is not None and applied.purged_to is not None:
            old = newest.where(_before_a_purge(applied.purged_to, applied.purged_before_ms) & ~F.col("__deleted"))
            table = None if old.isEmpty() else stored()  # the table's keys are read for such rows only
            if table is not None:
                late = _too_late(old, applied.purged_to, table, key)
                newest = newest.join(late.select(*key), list(key), "left_anti")
                bad = bad.unionByName(late)
        yield newest.drop(REASON, *RECORD_COLUMNS), bad.select(*RECORD_COLUMNS, REASON)


def _unpartitionable(partition_by: Sequence[str]) -> Iterator[SparkColumn]:
    """Why a row can't be shown: Hive has one partition for what is NULL or empty, and readers make one value of it."""
    for name in partition_by:
        nameless = F.coalesce(F.col(name).cast("string"), F.lit("")) == ""
        told = f"the partition column {name} is NULL or empty, which no reader could tell apart"
        yield F.when(nameless & ~F.col("__deleted"), F.lit(told))


@contextmanager
def cached(rows: DataFrame) -> Iterator[DataFrame]:
    """Rows that are computed once, however often the block asks for them."""
    cached = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield cached
    finally:
        cached.unpersist()


def newest_per_key(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """One row a key: the newest by the order of design section 5; equal orders are the same change twice."""
    newest = Window.partitionBy(*key).orderBy(F.col(ORDER_COLUMN).desc(), F.col(OFFSET).desc())
    return rows.withColumn("__rank", F.row_number().over(newest)).where("__rank = 1").drop("__rank")


def _before_a_purge(purged_to: str, purged_before_ms: int | None) -> SparkColumn:
    """Whether a change may be older than a tombstone that is gone: by its order, and by when it was committed.

    A transaction that stayed open across the purge has changes of a low LSN, and is none of these.
    """
    old = F.col(ORDER_COLUMN) <= purged_to
    if purged_before_ms is None:
        return old
    return old & F.coalesce(F.col("__source_ts_ms") <= purged_before_ms, F.lit(True))


def _too_late(old: DataFrame, purged_to: str, stored: DataFrame, key: Sequence[str]) -> DataFrame:
    """Those of the rows, all older than what was purged, whose keys the table does not have: each could bring back a
    purged one.
    """
    return old.join(stored.select(*key), list(key), "left_anti").withColumn(
        REASON,
        F.concat(
            F.lit("it arrives later than the replay window allows: it is older than deletes that were purged ("),
            F.col(ORDER_COLUMN),
            F.lit(f" is not after {purged_to}), and the table does not have its key (any more)"),
        ),
    )
