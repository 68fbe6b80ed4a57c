"""Reduce decoded records to the newest row of each key, and separate the records that cannot be applied."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from pyspark import StorageLevel
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.objects.hive_partitions import NULL_TEXTS
from cdc_lake.contract.table.event_order import ORDER_COLUMN
from cdc_lake.contract.table.timeline import Checkpoint
from cdc_lake.jobs.apply import unavailable_values
from cdc_lake.jobs.apply.decode import OFFSET, POSITION_COLUMNS, REASON, UNAVAILABLE, VALUE


@dataclass(frozen=True)
class Folded:
    """The result of fold().

    `newest` has the rows to write, one for each key. `bad` has the records that cannot be applied (POSITION_COLUMNS and
    REASON); None if every record can be applied. `keys` is the number of keys; None if it was not counted. With
    `shuffled`, each read of `newest` shuffles or joins rows.
    """

    newest: DataFrame
    bad: DataFrame | None
    keys: int | None
    shuffled: bool


@contextmanager
def fold(
    decoded: DataFrame,
    key: Sequence[str],
    partition_by: Sequence[str],
    stored: Callable[[], DataFrame | None],
    applied: Checkpoint | None,
) -> Iterator[Folded]:
    """Reduce decoded records to the newest row of each key.

    `stored` returns the table's rows, or None for a new table; it is called only if the batch has unavailable values,
    or if changes may be older than a purge. `applied` is the table's checkpoint, which contains the purge position. One
    Spark job counts unreadable, incomplete and such old records, so that a batch without them needs no other job.
    """
    # Only dead letters need the records' values; they read them again.
    with cached(decoded.drop(VALUE)) as read:
        reason = F.coalesce(REASON, *_unpartitionable(partition_by, dict(read.dtypes)))
        old_change = F.lit(False)
        if applied is not None and applied.purged_to is not None:
            old_change = _before_a_purge(applied.purged_to, applied.purged_before_ms) & ~F.col("__deleted")
        unavailable, rejected, accepted, keys, old_changes = _counts(read, reason, key, old_change)
        resolved = unavailable_values.resolve(read, stored, key) if unavailable else read.drop(UNAVAILABLE)
        checked = resolved.withColumn(REASON, reason).withColumns(
            _deleted_partition_values(partition_by, dict(read.dtypes))
        )
        bad = checked.where(F.col(REASON).isNotNull())
        readable = checked.where(F.col(REASON).isNull())
        # In a snapshot, and often in a small batch, each key has one record: then no row needs to be shuffled.
        shuffled = keys != accepted
        newest = newest_per_key(readable, key) if shuffled else readable
        late = None
        # Read the table's keys only if there are such changes.
        if applied is not None and applied.purged_to is not None and old_changes and (table := stored()) is not None:
            late = _too_late(newest.where(old_change), applied.purged_to, table, key)
            newest = newest.join(late.select(*key), list(key), "left_anti")
            bad = bad.unionByName(late)
        ordinary = not unavailable and not rejected and late is None
        yield Folded(
            newest.drop(REASON, *POSITION_COLUMNS),
            None if ordinary else bad.select(*POSITION_COLUMNS, REASON),
            keys if ordinary else None,
            shuffled or not ordinary,
        )


def _counts(
    read: DataFrame, reason: SparkColumn, key: Sequence[str], old_change: SparkColumn
) -> tuple[int, int, int, int, int]:
    """Return five counts.

    They are the numbers of records with an unavailable value, of rejected records, of the other records, of their keys,
    and of those for which `old_change` is true.
    """
    [row] = read.agg(
        F.count_if(F.col(REASON).isNull() & (F.size(UNAVAILABLE) > 0)),
        F.count_if(reason.isNotNull()),
        F.count_if(reason.isNull()),
        F.count_distinct(F.when(reason.isNull(), F.struct(*key))),
        F.count_if(reason.isNull() & old_change),
    ).collect()
    return int(row[0]), int(row[1]), int(row[2]), int(row[3]), int(row[4])


def _unpartitionable(partition_by: Sequence[str], kinds: Mapping[str, str]) -> Iterator[SparkColumn]:
    """Yield the reasons for rejecting values that a reader would return as another value.

    These are texts that Hive stores in the partition of NULL, and NULL in a column that is not text.
    """
    for name in partition_by:
        value = F.col(name)
        if kinds[name] == "string":
            reason = F.concat(
                F.lit(f"the partition column {name} is '"), value, F.lit("', which readers return as NULL")
            )
            yield F.when(value.isin("", *NULL_TEXTS) & ~F.col("__deleted"), reason)
        else:
            reason = F.lit(f"the partition column {name} is NULL, which partitions of type {kinds[name]} cannot have")
            yield F.when(value.isNull() & ~F.col("__deleted"), reason)


def _deleted_partition_values(partition_by: Sequence[str], kinds: Mapping[str, str]) -> dict[str, SparkColumn]:
    """Return the partition columns that are not text, with the type's zero instead of NULL in deleted rows.

    Trino cannot read a partition of NULL of such a type, not even for a query that leaves out deleted rows.
    """
    zeros = {name: "1970-01-01" if kinds[name] == "date" else "0" for name in partition_by if kinds[name] != "string"}
    return {
        name: F.when(F.col(name).isNull() & F.col("__deleted"), F.lit(zero).cast(kinds[name])).otherwise(F.col(name))
        for name, zero in zeros.items()
    }


@contextmanager
def cached(rows: DataFrame) -> Iterator[DataFrame]:
    """Cache rows during a block."""
    persisted = rows.persist(StorageLevel.MEMORY_AND_DISK)
    try:
        yield persisted
    finally:
        persisted.unpersist()


def newest_per_key(rows: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return the newest row of each key.

    Equal positions are the same change twice (docs/decisions/0005-order-column.md).
    """
    newest = Window.partitionBy(*key).orderBy(F.col(ORDER_COLUMN).desc(), F.col(OFFSET).desc())
    return rows.withColumn("__rank", F.row_number().over(newest)).where("__rank = 1").drop("__rank")


def _before_a_purge(purged_to: str, purged_before_ms: int | None) -> SparkColumn:
    """Return whether a change may be older than a purged tombstone, by its position and its commit time.

    The commit time excludes changes of a transaction that was open during the purge, although their LSNs are low.
    """
    old = F.col(ORDER_COLUMN) <= purged_to
    if purged_before_ms is None:
        return old
    return old & F.coalesce(F.col("__source_ts_ms") <= purged_before_ms, F.lit(True))


def _too_late(old: DataFrame, purged_to: str, stored: DataFrame, key: Sequence[str]) -> DataFrame:
    """Return the rows of `old` whose keys the table does not have: each could restore a purged row."""
    return old.join(stored.select(*key), list(key), "left_anti").withColumn(
        REASON,
        F.concat(
            F.lit("it arrives later than the replay window allows: it is older than purged deletes ("),
            F.col(ORDER_COLUMN),
            F.lit(f" is not after {purged_to}), and the table does not have its key"),
        ),
    )
