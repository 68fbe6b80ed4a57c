"""Measure whether the cost of a poll depends on the number of changed rows, and not on the size of the table.

Starts a separate stack (PostgreSQL, Kafka, S3) and Spark as the local profile does. For each table size, it polls
all rows once, then each number of changed rows. A poll without an index on the polled column is measured for
comparison.

    python -m benchmarks.source.poll_cost --rows 50000 5000000 --changed 100 1000 10000
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.report.figures import Figure
from benchmarks.report.results import Recorder
from cdc_lake.pipeline.source_health import polled_source
from cdc_lake_tests.helpers.local_stack import scratch_home, source_postgres
from cdc_lake_tests.integration.jobs.engines import running_engines
from cdc_lake_tests.integration.poll.polled_pipeline import PolledPipeline
from resources.postgres.resource import Postgres

COMPARED = 1000
"""The changed rows of the polls that are compared: between tables, and with ten times as many."""
POLLS = 5
_TABLES = "    - { name: goods, key: [id], poll: { timestamp: changed } }"


@dataclass(frozen=True)
class Cost:
    """The seconds of polls of one table: of all rows, and the medians by changed rows with and without an index."""

    rows: int
    first: float
    changed: Mapping[int, float]
    changed_without_index: Mapping[int, float]


def measure(rows: int, changed: Sequence[int], folder: Path, engines: object, postgres: Postgres) -> Cost:
    """Poll a table of `rows` rows: all, then changed ones with an index and without one."""
    pipeline = PolledPipeline.created(f"goods_{rows}", folder, engines, postgres, _TABLES, {})  # type: ignore[arg-type]
    pipeline.execute("create table goods (id int primary key, v text, changed timestamptz not null default now())")
    pipeline.execute("create index goods_changed on goods (changed)")
    pipeline.execute("insert into goods select n, 'value ' || n from generate_series(1, %s) n", rows)
    pipeline.execute("analyze goods")
    first = _poll(pipeline)
    with_index = {count: statistics.median(_polls(pipeline, rows, count)) for count in changed}
    pipeline.execute("drop index goods_changed")
    return Cost(rows, first, with_index, {n: statistics.median(_polls(pipeline, rows, n)) for n in changed})


def _polls(pipeline: PolledPipeline, rows: int, changed: int) -> Iterator[float]:
    """Yield the seconds of POLLS polls, each after an update of `changed` rows spread over the table."""
    for number in range(POLLS):
        statement = "update goods set v = v || '!', changed = now() where id %% %s = %s"
        pipeline.execute(statement, max(1, rows // changed), number % max(1, rows // changed))
        yield _poll(pipeline)


def _poll(pipeline: PolledPipeline) -> float:
    """Wait until the changes are visible to a poll, then poll; return its seconds."""
    polled_source.await_visible(pipeline.table("goods"), pipeline.postgres, 60)
    polled = pipeline.poll("goods")
    if not polled.records:
        raise RuntimeError("Cannot measure: the poll of goods found no changed row.")
    return polled.seconds


def main() -> int:
    """Run the benchmark on a separate stack and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[50_000, 500_000, 5_000_000])
    parser.add_argument("--changed", type=int, nargs="+", default=[100, COMPARED, 10_000])
    recorder = Recorder(parser)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, scratch_home() as home:
        scratch = Path(folder) / "spark"
        scratch.mkdir()
        with running_engines(home, scratch, ("postgres", "s3", "kafka")) as (engines, at):
            postgres = source_postgres(at)
            costs = [measure(rows, args.changed, Path(folder) / str(rows), engines, postgres) for rows in args.rows]
    table = Table("rows", "changed rows", "poll, s", "without an index, s")
    figures = []
    for each in costs:
        table.add_row(f"{each.rows:,}", "all", f"{each.first:.1f}", "")
        figures.append(Figure(what="the first poll, by rows", unit="s", value=round(each.first, 2), size=each.rows))
        for count, seconds in each.changed.items():
            table.add_row("", f"{count:,}", f"{seconds:.2f}", f"{each.changed_without_index[count]:.2f}")
            what = f"a poll of {each.rows:,} rows, by changed rows"
            figures.append(Figure(what=what, unit="s", value=round(seconds, 3), size=count))
    if COMPARED in args.changed and len(costs) > 1:
        ratio = costs[-1].changed[COMPARED] / costs[0].changed[COMPARED]
        figures.append(Figure(what="a poll, by table", unit="x", value=round(ratio, 2)))
    largest = costs[-1].changed
    if {COMPARED, 10 * COMPARED} <= largest.keys():
        ratio = largest[10 * COMPARED] / largest[COMPARED]
        figures.append(Figure(what="a poll, by changed rows", unit="x", value=round(ratio, 2)))
    Console(width=100).print(table)
    recorder.write(args, "poll_cost", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
