"""Measure the whole graph when nothing is new, by step; the limit is 15 seconds from a fresh shell.

Starts a separate stack, runs the demo, and then runs two commands in new processes, as CI does: the job of all stages
with their light checks, to which the limit applies, and the same with the checks that read whole tables. The baseline,
in the same run, is `dagster definitions validate`, which only loads the same definitions. The user CPU seconds are
those of Python; on a shared machine they vary less than the clock's.

    python benchmarks/nothing_new.py --rounds 3
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cdc_lake.instance import dagster_home, instance

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[1]
LIMIT_SECONDS = 15.0
MODULE = ("-m", "cdc_lake.definitions")
LIGHT_CHECKS_COMMAND = ("dagster", "job", "execute", "--job", "northwind", *MODULE)
ALL_CHECKS_COMMAND = ("dagster", "asset", "materialize", "--select", 'group:"northwind"', *MODULE)
LOAD_DEFINITIONS_COMMAND = ("dagster", "definitions", "validate", *MODULE)


@dataclass(frozen=True)
class Duration:
    """How long a program ran, and the user CPU time of Python in it."""

    seconds: float
    cpu_seconds: float


def run_timed(*command: str) -> Duration:
    """Run a program of the virtual environment and return its duration. Raises CalledProcessError if it fails."""
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return Duration(time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)


def median(durations: list[Duration]) -> Duration:
    """Return the median of the clock's seconds, and that of the CPU's."""
    return Duration(
        statistics.median(each.seconds for each in durations), statistics.median(each.cpu_seconds for each in durations)
    )


def steps() -> dict[str, float]:
    """Return the seconds of the newest run's steps."""
    with instance() as found:
        [run] = found.get_runs(limit=1)
        stats = found.get_run_step_stats(run.run_id)
    return {each.step_key: each.end_time - each.start_time for each in stats if each.end_time and each.start_time}


def report(rounds: int) -> int:
    """Measure and print; return 0 if the median is within the limit, else 1."""
    # Otherwise the runs are stored in a temporary folder, where steps() does not find them.
    os.environ["DAGSTER_HOME"] = str(dagster_home())
    baseline = median([run_timed(*LOAD_DEFINITIONS_COMMAND) for _ in range(rounds)])
    table = Table("what", "seconds", "user CPU", "against the baseline", title=f"nothing new, median of {rounds}")
    limited = 0.0
    for what, command in (
        ("all stages, light checks", LIGHT_CHECKS_COMMAND),
        ("and the checks of whole tables", ALL_CHECKS_COMMAND),
    ):
        found = median([run_timed(*command) for _ in range(rounds)])
        limited = limited or found.seconds
        table.add_row(
            what, f"{found.seconds:.1f}", f"{found.cpu_seconds:.1f}", f"{found.seconds / baseline.seconds:.2f}x"
        )
        for name, step in sorted(steps().items(), key=lambda each: -each[1]):
            table.add_row(f"  {name}", f"{step:.1f}", "", f"{step / baseline.seconds:.2f}x")
    table.add_row("loading the definitions", f"{baseline.seconds:.1f}", f"{baseline.cpu_seconds:.1f}", "1.00x")
    console = Console(width=110)
    console.print(table)
    console.print(f"all stages with light checks: {limited:.1f} s; the limit is {LIMIT_SECONDS:.0f} s")
    return 0 if limited < LIMIT_SECONDS else 1


def main() -> int:
    """Run it on a separate stack, or on the one in --home, on which the demo has run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--home", help="a running stack on which the demo has run")
    options = parser.parse_args()
    if options.home:
        os.environ["CDC_LAKE_HOME"] = options.home
        return report(options.rounds)
    with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as folder:
        Path(folder).chmod(0o711)  # PostgreSQL's user needs access to the subfolder
        os.environ["CDC_LAKE_HOME"] = str(Path(folder) / "home")
        try:
            run_timed("cdc-lake", "demo", "--json")
            return report(options.rounds)
        finally:
            run_timed("cdc-lake", "down")


if __name__ == "__main__":
    sys.exit(main())
