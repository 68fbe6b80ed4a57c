"""How long the whole graph takes when nothing is new, and where that goes: the bound is 15 seconds from a fresh shell.

Makes a stack of its own, runs the demo, and then runs two things from new processes, as CI does: the job of all stages
with their light checks, which is what the bound is for, and the same with the checks that read whole tables. The peer,
in the same run: `dagster definitions validate`, which loads the same definitions and does nothing. User CPU seconds are
those of Python; on a machine that others use they are steadier than the clock's.

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
BOUND_SECONDS = 15.0
MODULE = ("-m", "cdc_lake.definitions")
WHOLE = ("dagster", "job", "execute", "--job", "northwind", *MODULE)
CHECKED = ("dagster", "asset", "materialize", "--select", 'group:"northwind"', *MODULE)
PEER = ("dagster", "definitions", "validate", *MODULE)


@dataclass(frozen=True)
class Took:
    """What a program took."""

    seconds: float
    cpu_seconds: float


def took(*command: str) -> Took:
    """What a program of the virtual environment takes. Raises CalledProcessError where it fails."""
    started, before = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return Took(time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before)


def median(all_of: list[Took]) -> Took:
    """The median of the clock's seconds, and that of the CPU's."""
    return Took(statistics.median(x.seconds for x in all_of), statistics.median(x.cpu_seconds for x in all_of))


def steps() -> dict[str, float]:
    """Seconds by step of the newest run."""
    with instance() as found:
        [run] = found.get_runs(limit=1)
        stats = found.get_run_step_stats(run.run_id)
    return {each.step_key: each.end_time - each.start_time for each in stats if each.end_time and each.start_time}


def report(rounds: int) -> int:
    """Measure and print; 0 where the median is within the bound."""
    os.environ["DAGSTER_HOME"] = str(dagster_home())  # or the runs are in a folder that nobody finds again
    peer = median([took(*PEER) for _ in range(rounds)])
    table = Table("what", "seconds", "user CPU", "against the peer", title=f"nothing new, median of {rounds}")
    bounded = 0.0
    for what, command in (("all stages, light checks", WHOLE), ("and the checks of whole tables", CHECKED)):
        found = median([took(*command) for _ in range(rounds)])
        bounded = bounded or found.seconds
        table.add_row(what, f"{found.seconds:.1f}", f"{found.cpu_seconds:.1f}", f"{found.seconds / peer.seconds:.2f}x")
        for name, step in sorted(steps().items(), key=lambda each: -each[1]):
            table.add_row(f"  {name}", f"{step:.1f}", "", f"{step / peer.seconds:.2f}x")
    table.add_row("loading the definitions", f"{peer.seconds:.1f}", f"{peer.cpu_seconds:.1f}", "1.00x")
    console = Console(width=110)
    console.print(table)
    console.print(f"all stages with light checks: {bounded:.1f} s; the bound is {BOUND_SECONDS:.0f} s")
    return 0 if bounded < BOUND_SECONDS else 1


def main() -> int:
    """Run it on a stack of its own, or on the one that --home names, where the demo has run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--home", help="a running stack on which the demo has run")
    options = parser.parse_args()
    if options.home:
        os.environ["CDC_LAKE_HOME"] = options.home
        return report(options.rounds)
    with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as folder:
        Path(folder).chmod(0o711)  # PostgreSQL's user must be able to pass through
        os.environ["CDC_LAKE_HOME"] = str(Path(folder) / "home")
        try:
            took("cdc-lake", "demo", "--json")
            return report(options.rounds)
        finally:
            took("cdc-lake", "down")


if __name__ == "__main__":
    sys.exit(main())
