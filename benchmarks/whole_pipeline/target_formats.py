"""Measure what a table costs in a Parquet target and in Hudi tables: bytes, seconds until visible, seconds of a query.

Starts a separate stack. A pipeline captures the table, lands it as GZIP Parquet, and feeds three targets: the landed
files with a view of the latest rows, a copy-on-write and a merge-on-read table. After the first load and after each
round of changes, the program adds up the objects of each target, and queries each in Athena SQL. It fails if the
rows of the Parquet target and the copy-on-write table differ. The two Hudi tables are written at the same time, so each
takes longer than it would alone.

    python -m benchmarks.whole_pipeline.target_formats --rows 100000 --rounds 10
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measures.pipeline_stack import running_pipeline_stack
from benchmarks.report.figures import Figure
from benchmarks.report.results import Recorder
from cdc_lake.contract.objects import object_names
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake_tests.integration.chain.chain_pipeline import ChainPipeline

NAME, TABLE = "formats", "goods"
TARGETS = {
    "Parquet": "{ name: files, database: formats_files, format: parquet }",
    "copy-on-write": "{ name: lake, database: formats_cow }",
    "merge-on-read": "{ name: mor, database: formats_mor, table_type: mor }",
}
CREATE = "create table goods (id int primary key, v bigint not null, note text)"
FILL = "insert into goods select n, n, md5(n::text) || md5((2 * n)::text) from generate_series(1, %s) n"
CHANGE = "update goods set v = v + 1 where mod(id, 100) = %s"
QUERY = "select count(*), sum(v), max(note) from {}"
QUERIES = 3
"""Repetitions of a query; its figure is the median."""


def measure(folder: Path, rows: int, rounds: int) -> Iterator[Figure]:
    """Yield the figures of each target after the first load and after each round."""
    pipeline = ChainPipeline(NAME, folder, {TABLE: ""}, targets=list(TARGETS.values()), formats=("json", "parquet"))
    pipeline.execute(CREATE)
    pipeline.execute(FILL, rows)
    pipeline.materialise("source", "topic")
    targets = dict(zip(TARGETS, pipeline.table(TABLE).in_targets, strict=True))
    for number in range(rounds + 1):
        if number:
            pipeline.execute(CHANGE, number % 100)
        facts = pipeline.land_and_apply().metadata
        landed = facts[pipeline.table(TABLE).asset("raw")]["seconds"]
        totals = set()
        for system, table in targets.items():
            applied = facts[table.asset("lake")]["seconds"] if table.is_hudi else 0.0
            seconds, total = _query(pipeline, table)
            # The local Trino reads a merge-on-read table's base files, so its changes are missing until a compaction.
            if not table.is_merge_on_read:
                totals.add(total)
            for what, unit, value in (
                ("bytes in addition to raw objects", "MB", _stored(pipeline, table) / 1e6),
                ("landed and applied", "s", landed + applied),
                ("a query over all rows", "s", seconds),
            ):
                yield Figure(what=what, unit=unit, system=system, size=number, value=round(value, 3))
        yield Figure(
            what="bytes of raw objects", unit="MB", system="raw", size=number, value=round(_raw(pipeline) / 1e6, 3)
        )
        if len(totals) != 1:
            raise RuntimeError(f"Cannot compare the targets: their rows differ after round {number}: {totals}.")
    pipeline.stop()


def _query(pipeline: ChainPipeline, table: PipelineTable) -> tuple[float, tuple[object, ...]]:
    """Return the median seconds of a query over all rows, and the totals that it returns."""
    found, seconds = [], []
    for _ in range(QUERIES):
        started = time.monotonic()
        found += pipeline.by_athena(QUERY.format(f'"{table.database}"."{table.view}"'))
        seconds.append(time.monotonic() - started)
    return statistics.median(seconds), found[0]


def _stored(pipeline: ChainPipeline, table: PipelineTable) -> int:
    """Return the bytes of a Hudi table with its metadata; 0 for a Parquet target, which reads the raw objects."""
    return sum(each.size for each in pipeline.store.scan(table.lake_prefix)) if table.is_hudi else 0


def _raw(pipeline: ChainPipeline) -> int:
    prefix = object_names.topic_prefix(pipeline.loaded.name, pipeline.table(TABLE).topic)
    return sum(each.size for each in pipeline.store.scan(prefix))


def main() -> int:
    """Run it; print a table of the first and the last round."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=10, help="rounds of changes of 1%% of the rows")
    recorder = Recorder(parser)
    options = parser.parse_args()
    with running_pipeline_stack() as (_, folder):
        figures = list(measure(folder, options.rows, options.rounds))
    table = Table(
        "", "", "first load", f"round {options.rounds}", title=f"{options.rows:,} rows, 1% changed in each round"
    )
    for first in (each for each in figures if each.size == 0):
        same = [each for each in figures if (each.what, each.system) == (first.what, first.system)]
        table.add_row(first.what, first.system, f"{first.value:.2f} {first.unit}", f"{same[-1].value:.2f} {first.unit}")
    Console(width=100).print(table)
    recorder.write(options, "target_formats", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
