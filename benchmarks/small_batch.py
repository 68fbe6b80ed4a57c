"""Measure a small batch in a warm session: 50 events from Kafka to a commit of the lake table.

Starts a separate stack (S3, Kafka, Spark). Each round produces the events, and then lands and applies them with the
same steps as the sensors and the assets.

    python -m benchmarks.small_batch --records 50 --rounds 15
"""

from __future__ import annotations

import argparse
import statistics
import sys

from rich.console import Console
from rich.table import Table

from benchmarks.measures.pipeline_table import running_table
from benchmarks.report.figures import Figure
from benchmarks.report.results import Recorder

WARM_UP = 12
STEPS = ("land", "apply")


def main() -> int:
    """Run it, and print the medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=15)
    recorder = Recorder(parser)
    options = parser.parse_args()
    with running_table(counted=False) as table:
        for _ in range(WARM_UP):
            table.batch(options.records)
        batches = [table.batch(options.records) for _ in range(options.rounds)]
    what = f"{options.records} events, warm"
    values = {step: statistics.median(each[step].seconds for each in batches) for step in STEPS}
    total = statistics.median(sum(each[step].seconds for step in STEPS) for each in batches)
    shown = Table("step", "seconds", title=f"{what}, median of {options.rounds}")
    figures = [Figure(what=what, unit="s", value=round(total, 3))]
    for step, seconds in values.items():
        figures.append(Figure(what=f"{what}: {step}", unit="s", value=round(seconds, 3)))
        shown.add_row(step, f"{seconds:.2f}")
    shown.add_row("both", f"{total:.2f}")
    Console(width=80).print(shown)
    recorder.write(options, "small_batch", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
