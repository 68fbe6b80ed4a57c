"""Fill in the values that PostgreSQL omits from the WAL if the replica identity is not FULL.

These are unchanged TOASTed values, and in a delete all values except the key. The stage `source` sets the identity to
FULL unless a generated column prevents it, and a check fails while it is not FULL. An unavailable value equals that of
the row's previous version: the newest earlier change of the key in this batch, or else the stored row. If neither
contains the value, it is NULL in a delete, and any other record becomes a dead letter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.table.event_order import ORDER_COLUMN
from cdc_lake.jobs.apply.decode import OFFSET, REASON, UNAVAILABLE

_NOT_FOUND = "neither the batch nor the table has an earlier version of the row with the value"


def resolve(decoded: DataFrame, stored: Callable[[], DataFrame | None], key: Sequence[str]) -> DataFrame:
    """Fill in the values that PostgreSQL left out, or set the REASON of their record; drops UNAVAILABLE.

    `stored` returns the table's rows, with the columns of `decoded` except RECORD_COLUMNS, or None for a new table. The
    caller should cache `decoded`, which is read several times.
    """
    incomplete = decoded.where(F.col(REASON).isNull() & (F.size(UNAVAILABLE) > 0))
    names = [row[0] for row in incomplete.select(F.explode(UNAVAILABLE)).distinct().collect()]
    keys = incomplete.select(*key).distinct()
    rest = decoded.join(keys, list(key), "left_anti").unionByName(
        decoded.join(keys, list(key), "left_semi").where(F.col(REASON).isNotNull())
    )
    affected = (
        decoded.join(keys, list(key), "left_semi").where(F.col(REASON).isNull()).withColumn("__stored", F.lit(False))
    )
    before = stored()
    if before is not None:
        stored_rows = before.join(keys, list(key), "left_semi").withColumn("__stored", F.lit(True))
        affected = affected.unionByName(stored_rows, allowMissingColumns=True)
    return rest.drop(UNAVAILABLE).unionByName(_filled(affected, names, key).select(rest.drop(UNAVAILABLE).columns))


def _filled(affected: DataFrame, names: Sequence[str], key: Sequence[str]) -> DataFrame:
    """Return the records of these keys, with unavailable values taken from the row's previous version."""
    order = Window.partitionBy(*key).orderBy(ORDER_COLUMN, F.col("__stored").desc(), OFFSET)
    earlier = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    later = order.rowsBetween(1, Window.unboundedFollowing)
    known = affected
    is_unavailable = {name: F.coalesce(F.array_contains(UNAVAILABLE, name), F.lit(False)) for name in names}
    for name in names:
        # The struct distinguishes a NULL value from an unavailable one.
        value = F.when(~is_unavailable[name], F.struct(F.col(name).alias("value")))
        known = known.withColumn(f"__known_{name}", F.last(value, ignorenulls=True).over(earlier))
    # A record that is older than the stored row is not applied, so it needs no REASON.
    known = known.withColumn("__past", F.coalesce(F.max("__stored").over(later), F.lit(False)))
    reason = F.coalesce(
        *(
            F.when(
                is_unavailable[name] & F.col(f"__known_{name}").isNull() & ~F.col("__past") & ~F.col("__deleted"),
                F.lit(
                    f"Cannot read column {name}: PostgreSQL left the unchanged value out, since the table's replica "
                    f"identity is not FULL, and {_NOT_FOUND}"
                ),
            )
            for name in names
        )
    )
    for name in names:
        known = known.withColumn(name, F.col(f"__known_{name}").getField("value"))
    return known.where("not __stored").withColumn(REASON, reason)
