"""The visibility rule has a Spark and a Python form; both give the same result for every case."""

from __future__ import annotations

from itertools import product

from cdc_lake.contract.source.visibility import XIDS, Point
from cdc_lake.contract.table.event_order import NO_LSN, Position
from cdc_lake.jobs.verify.snapshot_visibility import visible_at
from cdc_lake_tests.integration.verify.conftest import NewTable
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

EDGES = (0, 1, 3, 9, 10, 11, XIDS // 2 - 1, XIDS // 2, XIDS // 2 + 1, XIDS - 5, XIDS - 4, XIDS - 1)
POINTS = [
    Point(2, 5_000, 3_000, XIDS + 10, frozenset({XIDS - 4, XIDS + 9})),
    Point(0, 5_000, 0, 11),
    Point(1, 2**62, 2**61, 7 * XIDS + XIDS // 2, frozenset({7 * XIDS + 3})),
]


def test_the_spark_expression_equals_the_python_rule(verified_tables: NewTable, count_trials: CountTrials) -> None:
    spark = verified_tables().lake.engines.spark
    cases = [
        (Position(epoch, streamed, lsn), xid)
        for epoch, streamed, lsn, xid in product(
            range(4), (True, False), (0, 2_999, 3_000, 5_000, 5_001, 2**61, 2**62 + 1), (*EDGES, None)
        )
    ] + [(Position(epoch, False, NO_LSN), None) for epoch in range(4)]
    rows = spark.createDataFrame(
        [
            (number, place.encode(), None if place.incremental else place.lsn, xid)
            for number, (place, xid) in enumerate(cases)
        ],
        "number int, __order string, __lsn bigint, __txid bigint",
    )
    for point in POINTS:
        found = {
            row["number"]: row["visible"] for row in rows.select("number", visible_at(point).alias("visible")).collect()
        }
        assert found == {number: point.sees(place, xid) for number, (place, xid) in enumerate(cases)}
    count_trials("changes that both forms of the visibility rule agree on", len(cases) * len(POINTS))
