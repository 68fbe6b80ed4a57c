"""The visibility rule of contract/source/visibility.py as a Spark expression over the lake's columns."""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.source.visibility import XIDS, Point
from cdc_lake.contract.table.event_order import INCREMENTAL_POSITION, ORDER_COLUMN


def visible_at(point: Point) -> SparkColumn:
    """Return Point.sees() as an expression over ORDER_COLUMN, `__lsn` and `__txid`; it is never NULL."""
    epoch = F.substring(ORDER_COLUMN, 1, 6).cast("int")
    streamed = F.substring(ORDER_COLUMN, 8, 1) == "1"
    incremental = F.col(ORDER_COLUMN).endswith(INCREMENTAL_POSITION)
    lsn, xid = F.col("__lsn").cast("bigint"), F.col("__txid").cast("bigint")
    oldest = point.xmax - XIDS // 2
    full_xid = F.lit(oldest) + F.pmod(xid - F.lit(oldest), F.lit(XIDS))
    in_progress = full_xid.isin(sorted(point.in_progress)) if point.in_progress else F.lit(False)
    by_id = ~in_progress & ((lsn < point.horizon) | (full_xid < point.xmax))
    return F.coalesce(
        F.when((epoch < point.epoch) | incremental, True)
        .when(~streamed | xid.isNull(), lsn <= point.lsn)
        .otherwise(by_id),
        F.lit(False),
    )
