"""Measure the whole graph when nothing is new, by step; the goal is 10 seconds from a fresh shell.

Starts a separate stack, runs the demo, and then runs two commands, each in a new process, as a user does from a shell:
the job of all stages with their light checks, to which the goal applies, and the same with the checks that read whole
tables. The baseline, in the same run, is `dagster definitions validate`, which only loads the same definitions. On a
shared machine, CPU seconds vary less than wall-clock seconds.

    python -m benchmarks.whole_pipeline.nothing_new --rounds 3
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.measures.demo_stack import running_demo
from benchmarks.measures.processes import timed
from benchmarks.measures.usage import Usage
from benchmarks.report.figures import Figure
from benchmarks.report.results import Recorder
from cdc_lake.contract.plurals import counted
from cdc_lake.instance import instance

MODULE = ("-m", "cdc_lake.definitions")
LIGHT_CHECKS_COMMAND = ("dagster", "job", "execute", "--job", "northwind", *MODULE)
ALL_CHECKS_COMMAND = ("dagster", "asset", "materialize", "--select", 'group:"northwind"', *MODULE)
LOAD_DEFINITIONS_COMMAND = ("dagster", "definitions", "validate", *MODULE)
COMMANDS = {"whole graph": LIGHT_CHECKS_COMMAND, "whole graph, all checks": ALL_CHECKS_COMMAND}


def median(durations: Sequence[Usage]) -> Usage:
    """Return the median of the wall-clock seconds and the median of the CPU seconds."""
    return Usage(
        statistics.median(each.seconds for each in durations), statistics.median(each.cpu_seconds for each in durations)
    )


def last_run_steps() -> dict[str, float]:
    """Return the seconds of each step of the newest run, by step key."""
    with instance() as found:
        [run] = found.get_runs(limit=1)
        stats = found.get_run_step_stats(run.run_id)
    return {each.step_key: each.end_time - each.start_time for each in stats if each.end_time and each.start_time}


def measure(rounds: int) -> list[Figure]:
    """Measure, print a table and return the figures."""
    baseline = median([timed(*LOAD_DEFINITIONS_COMMAND) for _ in range(rounds)])
    title = f"nothing new: median of {counted(rounds, 'round')}; steps of the last round"
    table = Table("what", "seconds", "CPU", "against the baseline", title=title)
    figures = []
    for what, command in COMMANDS.items():
        found = median([timed(*command) for _ in range(rounds)])
        figures += [
            Figure(what=what, unit="s", value=round(found.seconds, 2)),
            Figure(what=what, unit="CPU s", value=round(found.cpu_seconds, 2)),
        ]
        table.add_row(
            what, f"{found.seconds:.1f}", f"{found.cpu_seconds:.1f}", f"{found.seconds / baseline.seconds:.2f}x"
        )
        for name, step in sorted(last_run_steps().items(), key=lambda each: -each[1]):
            table.add_row(f"  {name}", f"{step:.1f}", "", f"{step / baseline.seconds:.2f}x")
    table.add_row("loading the definitions", f"{baseline.seconds:.1f}", f"{baseline.cpu_seconds:.1f}", "1.00x")
    Console(width=110).print(table)
    return [*figures, Figure(what="loading the definitions", unit="s", value=round(baseline.seconds, 2))]


def main() -> int:
    """Run the benchmark on a separate stack, or with --home on a running stack on which the demo has run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--home", help="a running stack on which the demo has run")
    recorder = Recorder(parser)
    options = parser.parse_args()
    with running_demo(options.home):
        recorder.write(options, "nothing_new", measure(options.rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
