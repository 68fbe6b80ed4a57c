"""Measure how fast commands start: loading the definitions, and a query, including the start of its process.

Runs the demo on a separate stack. Loading, as each run does, is compared with the import of Dagster alone, each in a
process of its own.

    python -m benchmarks.whole_pipeline.start_times --rounds 7
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

DAGSTER = ("python", "-c", "import dagster")
DEFINITIONS = ("python", "-c", "from cdc_lake.definitions import defs; defs().get_repository_def()")
QUERY = ("cdc-lake", "query", "SELECT count(*) FROM order_items")


def median(command: Sequence[str], rounds: int) -> Usage:
    """Return the medians of a command's seconds and CPU seconds; the first run only warms the file cache."""
    found = [timed(*command) for _ in range(rounds + 1)][1:]
    return Usage(statistics.median(u.seconds for u in found), statistics.median(u.cpu_seconds for u in found))


def main() -> int:
    """Run the benchmark on a separate stack, or on the stack whose state folder is --home."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--home", help="a running stack on which the demo has run")
    recorder = Recorder(parser)
    options = parser.parse_args()
    with running_demo(options.home):
        dagster, definitions, query = (median(each, options.rounds) for each in (DAGSTER, DEFINITIONS, QUERY))
    what, query_what = "loading the definitions", "cdc-lake query"
    figures = [
        Figure(what=what, unit="s over import dagster", value=round(definitions.seconds - dagster.seconds, 2)),
        Figure(
            what=what, unit="CPU s over import dagster", value=round(definitions.cpu_seconds - dagster.cpu_seconds, 2)
        ),
        Figure(what=query_what, unit="s", value=round(query.seconds, 2)),
        Figure(what=query_what, unit="CPU s", value=round(query.cpu_seconds, 2)),
    ]
    table = Table("command", "seconds", "CPU seconds", title=f"median of {options.rounds}")
    for name, used in (("import dagster", dagster), (what, definitions), (query_what, query)):
        table.add_row(name, f"{used.seconds:.2f}", f"{used.cpu_seconds:.2f}")
    Console(width=100).print(table)
    recorder.write(options, "start_times", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
