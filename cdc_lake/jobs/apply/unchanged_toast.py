"""Values that PostgreSQL left out of a record: unchanged TOASTed ones, where the replica identity is not FULL.

`source` sets the identity to FULL, and a check is red while it is not; this is for the records in between. An UPDATE
that leaves a value out says that the row's version before had it: the newest earlier change of the key in this batch,
or the stored row. Where neither has it, the record can't be told and becomes a dead letter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.table.event_order import ORDER_COLUMN
from cdc_lake.jobs.apply.decode import OFFSET, REASON, UNAVAILABLE

_NOWHERE = "no earlier change of the row that has it is in the batch or in the table"


def resolve(decoded: DataFrame, stored: Callable[[], DataFrame | None], key: Sequence[str]) -> DataFrame:
    """Fill in the values that PostgreSQL left out, or set the REASON of their record; drops UNAVAILABLE.

    `stored` returns the table's rows, with the columns of `decoded` except RECORD_COLUMNS, or None for a new table; it
    is called only where a value was left out. Cache `decoded`: it is read once more to find that out.
    """
    lacking = decoded.where(F.col(REASON).isNull() & (F.size(UNAVAILABLE) > 0))
    if lacking.isEmpty():
        return decoded.drop(UNAVAILABLE)
    names = [row[0] for row in lacking.select(F.explode(UNAVAILABLE)).distinct().collect()]
    keys = lacking.select(*key).distinct()
    rest = decoded.join(keys, list(key), "left_anti").unionByName(
        decoded.join(keys, list(key), "left_semi").where(F.col(REASON).isNotNull())
    )
    asked = (
        decoded.join(keys, list(key), "left_semi").where(F.col(REASON).isNull()).withColumn("__stored", F.lit(False))
    )
    before = stored()
    if before is not None:
        held = before.join(keys, list(key), "left_semi").withColumn("__stored", F.lit(True))
        asked = asked.unionByName(held, allowMissingColumns=True)
    return rest.drop(UNAVAILABLE).unionByName(_filled(asked, names, key).select(rest.drop(UNAVAILABLE).columns))


def _filled(asked: DataFrame, names: Sequence[str], key: Sequence[str]) -> DataFrame:
    """The records of the keys in question, each lacking value taken from the row's version before."""
    order = Window.partitionBy(*key).orderBy(ORDER_COLUMN, F.col("__stored").desc(), OFFSET)
    earlier = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    later = order.rowsBetween(1, Window.unboundedFollowing)
    known = asked
    lacks = {name: F.coalesce(F.array_contains(UNAVAILABLE, name), F.lit(False)) for name in names}
    for name in names:
        # In a struct, a value that is NULL differs from one that was left out.
        told = F.when(~lacks[name], F.struct(F.col(name).alias("told")))
        known = known.withColumn(f"__told_{name}", F.last(told, ignorenulls=True).over(earlier))
    # A record that the stored row is newer than is not applied anyway.
    known = known.withColumn("__past", F.coalesce(F.max("__stored").over(later), F.lit(False)))
    reason = F.coalesce(
        *(
            F.when(
                lacks[name] & F.col(f"__told_{name}").isNull() & ~F.col("__past"),
                F.lit(
                    f"the value of {name} did not change and PostgreSQL left it out (the table's replica identity is "
                    f"not FULL); {_NOWHERE}"
                ),
            )
            for name in names
        )
    )
    for name in names:
        known = known.withColumn(name, F.col(f"__told_{name}").getField("told"))
    return known.where("not __stored").withColumn(REASON, reason)
