"""Measure how many changes a second reach the lake in continuous mode, as long as the source goes on writing.

Starts a separate stack. For each kind of pipeline, changes are committed at `--rate` a second for `--minutes`, then one
more; the figure is the number of changes divided by the seconds from the first commit until the last change is visible
in Athena SQL. A pipeline that falls behind has a lower figure than the rate, and its lag at the end, from the last
commit until it is visible, is longer than after a start of 15 s.

- outbox: Northwind's orders, by `cdc-lake run northwind`; each change is a transaction that rewrites a document.
- log: a table of 100,000 rows that is captured itself; ten transactions a second.

    python -m benchmarks.whole_pipeline.sustained --kinds outbox log --minutes 3 --rate 1200
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path

from rich.console import Console
from rich.table import Table
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from benchmarks.measures.demo_stack import running_demo, source_dsn
from benchmarks.measures.processes import running
from benchmarks.report.figures import Figure
from benchmarks.report.results import Recorder
from benchmarks.whole_pipeline.freshness import ORDER, QUERY
from cdc_lake.pipeline.continuous import run as continuous
from cdc_lake.profile import resolved, spark
from cdc_lake_tests.helpers.source_changes.order_traffic import Traffic
from cdc_lake_tests.integration.chain.chain_pipeline import ChainPipeline

ROWS, TRANSACTIONS = 100_000, 10
MARKED = date(1900, 1, 1)  # before the dates of the data and of the program freshness
WARM_UP_SECONDS, BOUND_SECONDS = 15.0, 900.0


@dataclass(frozen=True)
class Workload:
    """A running pipeline with a source: writes until a condition is true, and returns the number of changes.

    `mark` commits a change with this number, and `visible` returns the newest number in the lake.
    """

    write: Callable[[Callable[[], bool]], int]
    mark: Callable[[int], None]
    visible: Callable[[], int | None]

    def measure(self, number: int, seconds: float) -> tuple[float, float]:
        """Write for `seconds`; return the changes a second up to the answer that contains the last one, and its lag."""
        started = time.monotonic()
        changes = self.write(lambda: time.monotonic() >= started + seconds)
        self.mark(number)
        marked = time.monotonic()
        _wait(lambda: self.visible() == number)
        ended = time.monotonic()
        return (changes + 1) / (ended - started), ended - marked


@contextmanager
def outbox(rate: float) -> Iterator[Workload]:
    """Run Northwind."""
    resources = resolved()
    postgres, athena = resources["postgres"], resources["athena"]
    traffic = Traffic(source_dsn(), seed=1, rate=rate)

    def write(until: Callable[[], bool]) -> int:
        before = traffic.counts.changes
        return traffic.run(until).changes - before

    def mark(number: int) -> None:
        with postgres.connect() as connection, connection.cursor() as cursor:
            cursor.execute(
                "update datalake.orders set shipped_date = %s where order_id = %s", (MARKED + timedelta(number), ORDER)
            )

    def visible() -> int | None:
        [(day,)] = athena.query(QUERY).rows
        return (day - MARKED).days if day is not None else None

    with running("cdc-lake", "run", "northwind"):
        mark(0)
        _wait(lambda: visible() == 0)
        yield Workload(write, mark, visible)


@contextmanager
def log(rate: float) -> Iterator[Workload]:
    """Run a pipeline that captures one table."""
    with tempfile.TemporaryDirectory(prefix="cdc-lake-bench-") as folder:
        pipeline = ChainPipeline("steady", Path(folder), {"goods": ""})
        pipeline.execute("create table goods (id int primary key, v bigint not null, note text)")
        pipeline.execute("insert into goods select n, 0, repeat('x', 200) from generate_series(1, %s) n", ROWS)
        pipeline.materialise("source", "topic")
        found, stop = pipeline.resources, threading.Event()
        size = max(1, round(rate / TRANSACTIONS))

        def write(until: Callable[[], bool]) -> int:
            changes, due = 0, time.monotonic()
            while not until():
                first = 1 + changes % (ROWS - size)
                pipeline.execute("update goods set v = v + 1 where id >= %s and id < %s", first, first + size)
                changes += size
                due += 1 / TRANSACTIONS
                time.sleep(max(0.0, due - time.monotonic()))
            return changes

        def mark(number: int) -> None:
            pipeline.execute("insert into goods values (%s, %s)", -number, number)

        def visible() -> int | None:
            [(newest,)] = pipeline.by_athena('select max(v) from "goods_current" where id < 0')
            return None if newest is None else int(str(newest))

        opened = continuous.systems(
            pipeline.loaded, found["postgres"], found["kafka"], found["store"], spark(), found["glue"], found["athena"],
            "the benchmark",
        )  # fmt: skip
        with opened as systems:
            thread = threading.Thread(target=continuous.run, args=(pipeline.loaded, systems, lambda _: None, stop))
            thread.start()
            try:
                _wait(lambda: found["glue"].get_table(pipeline.loaded.catalog, "goods_current") is not None)
                yield Workload(write, mark, visible)
            finally:
                stop.set()
                thread.join()
                pipeline.stop()


def _wait(met: Callable[[], bool]) -> None:
    """Wait until a condition is met. Raises RetryError after 15 minutes."""
    Retrying(
        retry=retry_if_result(lambda found: not found), stop=stop_after_delay(BOUND_SECONDS), wait=wait_fixed(0.25)
    )(met)


KINDS = {"outbox": outbox, "log": log}


def main() -> int:
    """Run it on a separate stack, or on the one in --home, on which the demo has run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--rate", type=float, default=1200.0, help="changes a second")
    parser.add_argument("--home", help="a running stack on which the demo has run")
    recorder = Recorder(parser)
    options = parser.parse_args()
    figures = []
    shown = Table("kind", "changes/s", "lag after the start, s", "lag at the end, s")
    shown.title = f"{options.rate:g} changes/s written for {options.minutes:g} minutes"
    with running_demo(options.home):
        for kind in options.kinds:
            with KINDS[kind](options.rate) as workload:
                _, first = workload.measure(1, WARM_UP_SECONDS)
                value, last = workload.measure(2, options.minutes * 60)
            figures.append(Figure(what=f"sustained, {kind}", unit="changes/s", value=round(value)))
            figures.append(Figure(what=f"lag after the start, {kind}", unit="s", value=round(first, 2)))
            figures.append(Figure(what=f"lag at the end, {kind}", unit="s", value=round(last, 2)))
            shown.add_row(kind, f"{value:,.0f}", f"{first:.1f}", f"{last:.1f}")
    Console(width=80).print(shown)
    recorder.write(options, "sustained", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
