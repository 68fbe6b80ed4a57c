"""Measure a small batch in a warm session: 50 events from Kafka to a commit of the lake table.

Starts a separate stack (S3, Kafka, Spark). Each round produces the events, and then lands and applies them with the
same steps as the sensors and the assets.

    python -m benchmarks.write_path.small_batch --records 50 --rounds 15
"""

from __future__ import annotations

import argparse
import statistics
import sys

from rich.console import Console
from rich.table import Table

from benchmarks.measures.benchmark_table import running_table
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
    shown = Table("step", "seconds", "CPU s", title=f"{what}, median of {options.rounds}")
    figures = []
    for step in (*STEPS, "both"):
        parts = STEPS if step == "both" else (step,)
        seconds = statistics.median(sum(each[part].seconds for part in parts) for each in batches)
        cpu_seconds = statistics.median(sum(each[part].cpu_seconds for part in parts) for each in batches)
        shown.add_row(step, f"{seconds:.2f}", f"{cpu_seconds:.2f}")
        name = what if step == "both" else f"{what}: {step}"
        figures.append(Figure(what=name, unit="s", value=round(seconds, 3)))
        figures.append(Figure(what=name, unit="CPU s", value=round(cpu_seconds, 3)))
    Console(width=80).print(shown)
    recorder.write(options, "small_batch", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
