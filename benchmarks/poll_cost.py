"""Measure what a poll costs on a table of millions of rows: in proportion to what changed, not to the table.

Starts a separate stack (PostgreSQL, Kafka, S3) and Spark as the local profile does. For tables of each size it polls
everything once, and then the same number of changed rows; the last column is a poll's time divided by that on the first
table. A poll without an index on the polled column is measured for comparison.

    python -m benchmarks.poll_cost --rows 50000 5000000
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cdc_lake.pipeline.source_health import polled_source
from cdc_lake_tests.helpers.local_stack import scratch_home, source_postgres
from cdc_lake_tests.integration.jobs.engines import running_engines
from cdc_lake_tests.integration.poll.polled_pipeline import PolledPipeline
from resources.postgres.resource import Postgres

CHANGED = 1000
POLLS = 5
_TABLES = "    - { name: goods, key: [id], poll: { timestamp: changed } }"


@dataclass(frozen=True)
class Cost:
    """The seconds of polls of one table; `changed` is the median for CHANGED rows, with and without an index."""

    rows: int
    first: float
    changed: float
    changed_without_index: float


def measure(rows: int, folder: Path, engines: object, postgres: Postgres) -> Cost:
    """Poll a table of `rows` rows: all, then some changed ones with an index and without one."""
    pipeline = PolledPipeline.created(f"goods_{rows}", folder, engines, postgres, _TABLES, {})  # type: ignore[arg-type]
    pipeline.execute("create table goods (id int primary key, v text, changed timestamptz not null default now())")
    pipeline.execute("create index goods_changed on goods (changed)")
    pipeline.execute("insert into goods select n, 'value ' || n from generate_series(1, %s) n", rows)
    pipeline.execute("analyze goods")
    first = _poll(pipeline)
    with_index = statistics.median(_changes(pipeline, rows))
    pipeline.execute("drop index goods_changed")
    return Cost(rows, first, with_index, statistics.median(_changes(pipeline, rows)))


def _changes(pipeline: PolledPipeline, rows: int) -> Iterator[float]:
    for number in range(POLLS):
        pipeline.execute(
            "update goods set v = v || '!', changed = now() where id %% %s = %s", max(1, rows // CHANGED), number
        )
        yield _poll(pipeline)


def _poll(pipeline: PolledPipeline) -> float:
    """Poll what is committed, once a poll can see it; return the seconds of the poll."""
    polled_source.await_visible(pipeline.table("goods"), pipeline.postgres, 60)
    polled = pipeline.poll("goods")
    if not polled.records:
        raise RuntimeError("the poll has sent no record")
    return polled.seconds


def main() -> int:
    """Run it on a separate stack; print a table and JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[50_000, 500_000, 5_000_000])
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, scratch_home() as home:
        scratch = Path(folder) / "spark"
        scratch.mkdir()
        with running_engines(home, scratch, ("postgres", "s3", "kafka")) as (engines, at):
            postgres = source_postgres(at)
            costs = [measure(rows, Path(folder) / str(rows), engines, postgres) for rows in args.rows]
    table = Table("rows", "first poll, s", f"{CHANGED} changed, s", "without an index, s", "ratio to the first table")
    for each in costs:
        ratio = each.changed / costs[0].changed
        table.add_row(
            f"{each.rows:,}",
            f"{each.first:.1f}",
            f"{each.changed:.2f}",
            f"{each.changed_without_index:.2f}",
            f"{ratio:.2f}",
        )
    console = Console(width=100)
    console.print(table)
    console.print_json(json.dumps([asdict(each) for each in costs]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
