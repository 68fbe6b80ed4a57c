"""Profile a batch in a warm session: where the time of landing and applying goes.

Starts a separate stack (S3, Kafka, Spark). For each number of records, batches are produced, landed and applied as by
the assets, while three profilers run: Spark's event log (jobs, and the CPU seconds of their tasks), the JVM's Flight
Recorder (Java methods, every 10 ms of a running thread) and py-spy (Python functions, 100 samples a second). Shares are
those of the samples of running threads. py-spy needs the right to trace this process, which root has.

    python -m benchmarks.write_path.profiles --records 50 829 10000 --rounds 20 --folder /tmp/profiles
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.measures.benchmark_table import BenchmarkTable, running_table
from benchmarks.measures.profilers import (
    SparkJob,
    event_log_settings,
    java_samples,
    python_samples,
    seconds_in_jobs,
    spark_jobs,
)
from benchmarks.report.figures import Figure
from benchmarks.report.results import Recorder
from cdc_lake_tests.integration.jobs.engines import SparkAdditions

WARM_UP = 12
SHOWN = 12
"""Rows of each table, and entries of each kind in the result."""


@dataclass(frozen=True)
class Profile:
    """What `rounds` batches took: an interval in epoch seconds, seconds by step, samples by method and by function."""

    started: float
    ended: float
    rounds: int
    steps: dict[str, float]
    java: Counter[str]
    python: Counter[str]

    def jobs(self, jobs: Sequence[SparkJob]) -> list[SparkJob]:
        """Return the Spark jobs of these batches."""
        return [job for job in jobs if self.started <= job.started <= self.ended]


def profile(table: BenchmarkTable, records: int, rounds: int, folder: Path) -> Profile:
    """Profile the batches of one size, after others that warm the session."""
    for _ in range(WARM_UP):
        table.batch(records)
    steps: dict[str, float] = defaultdict(float)
    with (
        java_samples(table.spark, folder / f"{records}.jfr") as java,
        python_samples(folder / f"{records}.py-spy.txt") as python,
    ):
        started = time.time()
        for _ in range(rounds):
            for step, cost in table.batch(records).items():
                steps[step] += cost.seconds
        ended = time.time()
    return Profile(started, ended, rounds, dict(steps), java, python)


def jobs_by_name(jobs: Sequence[SparkJob]) -> dict[str, list[SparkJob]]:
    """Return the jobs by name, those with the most seconds first."""
    found: dict[str, list[SparkJob]] = {}
    for job in jobs:
        found.setdefault(job.name, []).append(job)
    return dict(sorted(found.items(), key=lambda item: -sum(job.ended - job.started for job in item[1])))


def report(console: Console, records: int, found: Profile, jobs: Sequence[SparkJob]) -> list[Figure]:
    """Print the tables of one size, and return its figures per batch and as shares of the samples."""
    own, rounds = found.jobs(jobs), found.rounds
    figures = []

    def figure(what: str, unit: str, value: float) -> None:
        figures.append(Figure(what=what, unit=unit, size=records, value=round(value, 4)))

    steps = Table("step", "seconds", title=f"{records:,} records, mean of {rounds} batches")
    outside = found.steps["batch"] - seconds_in_jobs(own)
    for step, seconds in {**found.steps, "batch, outside of Spark jobs": outside}.items():
        steps.add_row(step, f"{seconds / rounds:.3f}")
        figure(f"step: {step}", "s", seconds / rounds)
    by_job = Table("Spark job", "times", "tasks", "seconds", "CPU s", title="Spark jobs, per batch")
    for name, same in list(jobs_by_name(own).items())[:SHOWN]:
        seconds = sum(job.ended - job.started for job in same) / rounds
        cpu_seconds = sum(job.cpu_seconds for job in same) / rounds
        counts = (f"{len(same) / rounds:.1f}", f"{sum(job.tasks for job in same) / rounds:.1f}")
        by_job.add_row(name, *counts, f"{seconds:.3f}", f"{cpu_seconds:.3f}")
        figure(f"Spark job: {name}", "s", seconds)
        figure(f"Spark job: {name}", "CPU s", cpu_seconds)
    console.print(steps, by_job)
    for kind, samples in (("Java method", found.java), ("Python function", found.python)):
        table = Table(kind, "share", title=f"{kind}s, of {samples.total():,} samples")
        for name, count in samples.most_common(SHOWN):
            table.add_row(name, f"{count / samples.total():.1%}")
            figure(f"{kind}: {name}", "share", count / samples.total())
        console.print(table)
    return figures


def main() -> int:
    """Run it, print the tables, and keep the recordings in `--folder`."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, nargs="+", default=[50, 829, 10_000])
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--folder", type=Path, help="keep the recordings here: event log, *.jfr, *.py-spy.txt")
    recorder = Recorder(parser)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as scratch:
        folder = (options.folder or Path(scratch)).resolve()
        events, settings = folder / "events", Path(scratch) / "events.properties"
        events.mkdir(parents=True, exist_ok=True)
        settings.write_text(event_log_settings(events), encoding="utf-8")
        with running_table(counted=False, additions=SparkAdditions(properties=[settings])) as table:
            profiles = {records: profile(table, records, options.rounds, folder) for records in options.records}
        jobs = spark_jobs(events)
    console = Console(width=120)
    figures = [figure for records, found in profiles.items() for figure in report(console, records, found, jobs)]
    recorder.write(options, "profiles", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
