"""Measure how fast a backlog is landed and applied: records of 1 KB from Kafka to raw objects and to the lake.

Starts a separate stack (S3, Kafka, Spark). After a warm-up it produces `--records` updates of `--keys` keys, lands them
in one run and applies them in one commit, like a pipeline that restarts after a stop. The store's own rate is measured
too: two threads put objects of the same number and size.

    python -m benchmarks.write_path.landing_rate --records 1000000
"""

from __future__ import annotations

import argparse
import statistics
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from rich.console import Console
from rich.table import Table

from benchmarks.goals import STORE
from benchmarks.measures.benchmark_table import BenchmarkTable, running_table
from benchmarks.measures.usage import Usage, measured
from benchmarks.report.figures import Figure
from benchmarks.report.results import Recorder

NOTE = 800
"""Characters of the column that makes a record about 1 KB long."""
WARM_UP = 100_000
ROUNDS = 3


@dataclass(frozen=True)
class Round:
    """The cost of one backlog; `store` is that of putting as many bytes."""

    land: Usage
    apply: Usage
    store: Usage
    megabytes: float


def land(table: BenchmarkTable, records: int) -> tuple[Usage, Usage, float]:
    """Produce a backlog, land it, and put objects of the same number and size.

    Returns the cost of landing, that of the puts, and the size in MB. Raises RuntimeError if a record is not landed.
    """
    end = table.kafka.end_offsets(table.table.topic)[0]
    table.send(end, end + records)
    _, landed = measured(table.land)
    head = table.chain.head()
    if head is None or head.records != records:
        raise RuntimeError(f"Cannot measure landing: the newest manifest does not have {records} records.")
    store, objects = table.direct.store(), len(head.objects)
    size = sum(item.bytes for item in head.objects) // objects
    body = b"x" * size

    def put(number: int) -> None:
        store.put_new(f"bodies/{head.number}/{number}", body)

    with ThreadPoolExecutor(2) as pool:
        _, stored = measured(lambda: list(pool.map(put, range(objects))))
    return landed, stored, size * objects / 1e6


def measure(table: BenchmarkTable, records: int) -> Round:
    """Land a backlog, apply it, and put as many bytes."""
    landed, stored, megabytes = land(table, records)
    _, applied = measured(table.apply)
    return Round(landed, applied, stored, megabytes)


def main() -> int:
    """Run it, and print the rates."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=1_000_000)
    parser.add_argument("--keys", type=int, default=100_000)
    recorder = Recorder(parser)
    options = parser.parse_args()
    with running_table(counted=False) as table:
        table.keys, table.note = options.keys, "x" * NOTE
        for _ in range(2):
            measure(table, WARM_UP)
        rounds = [measure(table, options.records) for _ in range(ROUNDS)]
    shown = Table("what", "seconds", "CPU s", "records/s", title=f"{options.records:,} records, median of {ROUNDS}")
    figures = []
    for what, used in (("landing", [each.land for each in rounds]), ("applying", [each.apply for each in rounds])):
        cpu = statistics.median(each.cpu_seconds for each in used) / options.records
        figures.append(Figure(what=what, unit="CPU ms for 1,000 records", value=round(1e6 * cpu, 1)))
    for what, unit, system, used in (
        ("landing", "records/s", None, [each.land for each in rounds]),
        ("backlog to the lake", "changes/s", None, [each.land + each.apply for each in rounds]),
        ("landing", "records/s", STORE, [each.store for each in rounds]),
    ):
        seconds = statistics.median(each.seconds for each in used)
        figure = Figure(what=what, unit=unit, value=round(options.records / seconds))
        figures.append(figure if system is None else figure.model_copy(update={"system": system}))
        cpu = statistics.median(each.cpu_seconds for each in used)
        shown.add_row(f"{what}, {figures[-1].system}", f"{seconds:.1f}", f"{cpu:.1f}", f"{figure.value:,.0f}")
    size = rounds[0].megabytes
    figures.append(Figure(what="landed objects", unit="MB", value=round(size, 1)))
    Console(width=100).print(shown)
    recorder.write(options, "landing_rate", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
