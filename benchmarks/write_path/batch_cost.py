"""Measure what a batch costs after many manifests, and with many commits: landing, light check, applying.

Starts a separate stack (S3, Kafka, Spark). A fixture writes a history of manifests, each with one object of one record,
and applies it in one commit. Then batches of one record are landed and applied as the asset graph does. A proxy in
front of the store counts the requests of Python, of its workers and of Spark's S3A. The check of the whole chain, which
runs once a day, is measured separately (docs/decisions/0028-cost-of-a-batch.md). Afterwards the table's timeline gets
more commits, as in an hour of continuous mode.

    python -m benchmarks.write_path.batch_cost --manifests 10 1000 10000 --commits 100 1000 2500
"""

from __future__ import annotations

import argparse
import logging
import statistics
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.measures import table_history
from benchmarks.measures.benchmark_table import BenchmarkTable, Cost, running_table
from benchmarks.report.figures import Figure
from benchmarks.report.results import Recorder

log = logging.getLogger(__name__)
WARM_UP = 12


def median_cost(costs: Sequence[dict[str, Cost]], step: str) -> Cost:
    """Return the medians of a step's seconds, CPU seconds and requests."""
    found = [each[step] for each in costs]
    return Cost(
        statistics.median(c.seconds for c in found),
        statistics.median(c.cpu_seconds for c in found),
        int(statistics.median(c.requests for c in found)),
    )


Measured = dict[int, dict[str, Cost]]


def measure(bench: BenchmarkTable, sizes: Sequence[int], rounds: int) -> Measured:
    """Return the cost of each step after histories of these lengths."""
    measured: Measured = {}
    for size in sizes:
        took = bench.cost(lambda: table_history.write_manifests(bench, size))  # noqa: B023 - called in this round
        log.info("wrote and applied a history of %d manifests in %.0f s", size, took.seconds)
        measured[size] = _batches(bench, rounds, WARM_UP if not measured else 2) | {
            "whole chain": bench.cost(bench.check_whole_chain)
        }
    return measured


def measure_commits(bench: BenchmarkTable, sizes: Sequence[int], rounds: int) -> Measured:
    """Return the cost of each step with timelines of these lengths."""
    measured: Measured = {}
    for size in sizes:
        table_history.write_commits(bench, size)
        measured[size] = _batches(bench, rounds, 2)
    return measured


def _batches(bench: BenchmarkTable, rounds: int, warm_up: int) -> dict[str, Cost]:
    for _ in range(warm_up):
        bench.batch()
    costs = [bench.batch() for _ in range(rounds)]
    return {step: median_cost(costs, step) for step in costs[0]}


def report(by: str, measured: Measured, rounds: int) -> Table:
    """Return the costs as a table, with their ratios to the shortest history's."""
    first = next(iter(measured.values()))
    table = Table(by, "step", "seconds", "CPU s", "requests", "CPU s, ratio", "requests, ratio")
    table.title = f"median of {rounds} batches"
    for size, steps in measured.items():
        for step, cost in steps.items():
            ratios = (cost.cpu_seconds / first[step].cpu_seconds, cost.requests / first[step].requests)
            numbers = (f"{cost.seconds:.2f}", f"{cost.cpu_seconds:.2f}", f"{cost.requests:,}")
            table.add_row(f"{size:,}", step, *numbers, *(f"{ratio:.2f}x" for ratio in ratios))
    return table


def figures(by: str, measured: Measured) -> list[Figure]:
    """Return the costs by the number of manifests or commits, and the larger ratio of CPU seconds and requests."""
    batches = [steps["batch"] for steps in measured.values()]
    first, last = batches[0], batches[-1]
    ratio = max(last.cpu_seconds / first.cpu_seconds, last.requests / first.requests)
    return [
        Figure(what=f"a batch, by {by}", unit="x", value=round(ratio, 3)),
        *(
            Figure(what=f"{step}, by {by}", unit=unit, size=size, value=round(value, 3))
            for size, steps in measured.items()
            for step, cost in steps.items()
            for unit, value in (("s", cost.seconds), ("CPU s", cost.cpu_seconds), ("requests", cost.requests))
        ),
    ]


def main() -> int:
    """Run the benchmark; print the costs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manifests", type=int, nargs="+", default=[10, 1_000, 10_000])
    parser.add_argument("--commits", type=int, nargs="+", default=[100, 1_000, 2_500])
    parser.add_argument("--rounds", type=int, default=5)
    recorder = Recorder(parser)
    options = parser.parse_args()
    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(message)s")
    log.setLevel(logging.INFO)
    with running_table(counted=True) as bench:
        measured = {
            "manifests": measure(bench, sorted(options.manifests), options.rounds),
            "commits": measure_commits(bench, sorted(options.commits), options.rounds),
        }
    Console(width=110).print(*(report(by, found, options.rounds) for by, found in measured.items()))
    recorder.write(options, "batch_cost", [each for by, found in measured.items() for each in figures(by, found)])
    return 0


if __name__ == "__main__":
    sys.exit(main())
