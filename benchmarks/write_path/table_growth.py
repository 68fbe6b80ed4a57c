"""Measure what a batch of recent keys costs in tables of 10,000 to 1,000,000 rows.

Starts a separate stack (S3) and Spark. Every table gets a first load, and then batches of updates of its `--changes`
newest rows; each round applies one batch to every table. The goal is a ratio of at most 2 in CPU seconds between the
largest table and the smallest.

    python -m benchmarks.write_path.table_growth --rows 10000 100000 1000000
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measures.row_events import RawRows
from benchmarks.measures.usage import Usage, measured
from benchmarks.peers.our_table import OurTable
from benchmarks.report.figures import Figure
from benchmarks.report.results import Recorder
from cdc_lake_tests.integration.jobs.engines import Engines, running_engines

WARM_UP = 2


def measure(engines: Engines, sizes: list[int], changes: int, rounds: int) -> dict[int, Usage]:
    """Return the median cost of a batch by the table's rows."""
    tables = {}
    for rows in sizes:
        raw = RawRows(engines, rows)
        tables[rows] = raw, OurTable(engines.spark, raw.upsert_spec("cow"))
        tables[rows][1].load(raw.load())
    costs: dict[int, list[Usage]] = {rows: [] for rows in sizes}
    for number in range(WARM_UP + rounds):
        for rows, (raw, table) in tables.items():
            objects = raw.change(range(rows - changes, rows))
            _, used = measured(lambda: table.apply(objects))  # noqa: B023 - called in this round
            if number >= WARM_UP:
                costs[rows].append(used)
    return {
        rows: Usage(statistics.median(u.seconds for u in used), statistics.median(u.cpu_seconds for u in used))
        for rows, used in costs.items()
    }


def main() -> int:
    """Run it, and print the costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 100_000, 1_000_000])
    parser.add_argument("--changes", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    recorder = Recorder(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as folder:
        scratch = Path(folder) / "spark"
        scratch.mkdir()
        with running_engines(Path(folder) / "home", scratch, ("s3",)) as (engines, _):
            found = measure(engines, sorted(options.rows), options.changes, options.rounds)
    smallest = next(iter(found.values()))
    shown = Table("rows", "wall s", "CPU s", "ratio", title=f"{options.changes:,} newest rows changed")
    figures = []
    for rows, used in found.items():
        shown.add_row(
            f"{rows:,}",
            f"{used.seconds:.2f}",
            f"{used.cpu_seconds:.2f}",
            f"{used.cpu_seconds / smallest.cpu_seconds:.2f}x",
        )
        for unit, value in (("s", used.seconds), ("CPU s", used.cpu_seconds)):
            figures.append(Figure(what="a batch, by rows", unit=unit, size=rows, value=round(value, 3)))
    ratio = list(found.values())[-1].cpu_seconds / smallest.cpu_seconds
    figures.append(Figure(what="a batch, by rows", unit="x", value=round(ratio, 3)))
    Console(width=100).print(shown)
    recorder.write(options, "table_growth", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
