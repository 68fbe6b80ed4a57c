"""How long the whole graph takes when nothing is new, and where that goes: the bound is 30 seconds from a fresh shell.

Makes a stack of its own, runs the demo, and then materialises everything again from new processes, as CI does. The
peer, in the same run: `dagster definitions validate`, which loads the same definitions and does nothing.

    python benchmarks/nothing_new.py --rounds 3
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from cdc_lake.instance import dagster_home, instance

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[1]
BOUND_SECONDS = 30.0
MODULE = ("-m", "cdc_lake.definitions")
WHOLE = ("dagster", "asset", "materialize", "--select", 'group:"northwind"', *MODULE)
PEER = ("dagster", "definitions", "validate", *MODULE)


def seconds(*command: str) -> float:
    """How long a program of the virtual environment takes. Raises CalledProcessError where it fails."""
    started = time.monotonic()
    subprocess.run(
        [str(BIN / command[0]), *command[1:]],
        cwd=ROOT,
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.monotonic() - started


def steps() -> dict[str, float]:
    """Seconds by step of the newest run."""
    with instance() as found:
        [run] = found.get_runs(limit=1)
        stats = found.get_run_step_stats(run.run_id)
    return {each.step_key: each.end_time - each.start_time for each in stats if each.end_time and each.start_time}


def report(rounds: int) -> int:
    """Measure and print; 0 where the median is within the bound."""
    os.environ["DAGSTER_HOME"] = str(dagster_home())  # or the runs are in a folder that nobody finds again
    whole = [seconds(*WHOLE) for _ in range(rounds)]
    by_step = steps()
    peer = [seconds(*PEER) for _ in range(rounds)]
    middle, other = statistics.median(whole), statistics.median(peer)
    table = Table("what", "seconds", "against the peer", title=f"nothing new, median of {rounds}")
    table.add_row("the whole graph", f"{middle:.1f}", f"{middle / other:.2f}x")
    for name, took in sorted(by_step.items(), key=lambda each: -each[1]):
        table.add_row(f"  {name}", f"{took:.1f}", f"{took / other:.2f}x")
    table.add_row("loading the definitions", f"{other:.1f}", "1.00x")
    console = Console(width=110)
    console.print(table)
    console.print(f"rounds: {[round(each, 1) for each in whole]}; the bound is {BOUND_SECONDS:.0f} s")
    return 0 if middle < BOUND_SECONDS else 1


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
            seconds("cdc-lake", "demo", "--json")
            return report(options.rounds)
        finally:
            seconds("cdc-lake", "down")


if __name__ == "__main__":
    sys.exit(main())
