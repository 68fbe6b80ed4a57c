"""Measure the time from a commit at the source until an Athena query returns the change, with Northwind's YAML.

Starts a separate stack and materialises all assets. Then it starts `cdc-lake dev`, whose sensors launch runs, or with
`--continuous` `cdc-lake run northwind`. Meanwhile it changes orders at a constant rate. Once a second it commits a
marker: a new shipped date of one order that the other traffic does not change. Every 250 ms a query reads that date. A
marker's latency is the time from its commit to the first result that contains this marker or a later one. The window
begins when the first marker is visible. After it, nothing is written, and queries continue until all markers are
visible.

    python -m benchmarks.whole_pipeline.freshness --minutes 8
    python -m benchmarks.whole_pipeline.freshness --minutes 3 --rate 200 --continuous

Each latency includes the duration of a query, which is reported too. The memory and the CPU time of the stack's
components and of cdc-lake's processes are sampled meanwhile.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import psycopg2
from rich.console import Console
from rich.table import Table

from benchmarks.measures import component_usage, stage_lag
from benchmarks.measures.component_usage import ComponentUsage
from benchmarks.measures.demo_stack import running_demo, source_dsn
from benchmarks.measures.processes import running
from benchmarks.report.figures import Figure
from benchmarks.report.results import Recorder
from cdc_lake.instance import instance
from cdc_lake.pipeline.loading import load
from cdc_lake.profile import resolved
from cdc_lake_tests.helpers.source_changes.order_traffic import Traffic

ORDER = 10250  # the traffic does not change orders whose number ends in 0
QUERY = f"SELECT shipped_date FROM datalake.cdc_events WHERE order_id = {ORDER}"  # noqa: S608 - a constant
QUERY_SECONDS = 0.25
MARKER_SECONDS = 1.0
BOUND_SECONDS = 300.0
"""The time limit for the first marker, and for the last ones after the window."""


@dataclass
class Markers:
    """The times at which the markers 0, 1, … were committed and first seen, in seconds since 1970.

    Marker n is the shipped date `first_day` + n days.
    """

    first_day: date
    committed: list[float] = field(default_factory=list)
    seen: list[float] = field(default_factory=list)
    queries: list[float] = field(default_factory=list)
    """The duration of each query in seconds."""

    def write(self, dsn: str, stop: threading.Event) -> None:
        """Commit a marker each second until `stop` is set."""
        with closing(psycopg2.connect(dsn)) as connection:
            while not stop.wait(MARKER_SECONDS):
                day = self.first_day + timedelta(days=len(self.committed))
                with connection, connection.cursor() as cursor:
                    cursor.execute("update datalake.orders set shipped_date = %s where order_id = %s", (day, ORDER))
                self.committed.append(time.time())

    def read(self, query: Callable[[], date | None], until: Callable[[], bool]) -> None:
        """Query every 250 ms until `until` returns true; record which markers are visible."""
        while not until():
            started = time.time()
            day = query()
            now = time.time()
            self.queries.append(now - started)
            visible = 0 if day is None or day < self.first_day else (day - self.first_day).days + 1
            self.seen += [now] * (visible - len(self.seen))
            time.sleep(max(0.0, QUERY_SECONDS - (now - started)))

    def latencies(self) -> list[float]:
        """Return for each marker the seconds from its commit until it was visible."""
        return [seen - committed for committed, seen in zip(self.committed, self.seen, strict=True)]


def percentile(values: Sequence[float], share: float) -> float:
    """Return the value below which `share` of the values are."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def measure(home: Path, minutes: float, rate: float) -> list[Figure]:
    """Write and read for `minutes` from the first visible marker on; return the results.

    Raises RuntimeError if no marker becomes visible in five minutes, or not all of them in five minutes after the end.
    """
    resources = resolved()
    postgres, athena, dsn = resources["postgres"], resources["athena"], source_dsn()
    with postgres.connect() as connection, connection.cursor() as cursor:
        cursor.execute("select shipped_date from datalake.orders where order_id = %s", (ORDER,))
        [(shipped,)] = cursor.fetchall()
    stop, markers = threading.Event(), Markers(shipped + timedelta(days=1))
    traffic = Traffic(dsn, seed=1, rate=rate - 1 / MARKER_SECONDS)
    threads = [
        threading.Thread(target=markers.write, args=(dsn, stop)),
        threading.Thread(target=traffic.run, args=(stop.is_set,)),
    ]

    def read(seconds: float, until: Callable[[], bool] = lambda: False) -> None:
        end = time.monotonic() + seconds
        markers.read(lambda: athena.query(QUERY).rows[0][0], lambda: until() or time.monotonic() > end)

    for thread in threads:
        thread.start()
    try:
        read(BOUND_SECONDS, lambda: bool(markers.seen))
        if not markers.seen:
            raise RuntimeError(f"Cannot measure: no change was visible in {BOUND_SECONDS:.0f} s.")
        started_at = time.time()
        with component_usage.sampled(home) as used:
            read(minutes * 60)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    read(BOUND_SECONDS, lambda: len(markers.seen) == len(markers.committed))
    if missing := len(markers.committed) - len(markers.seen):
        raise RuntimeError(
            f"Cannot measure: {missing} changes are not visible {BOUND_SECONDS:.0f} s after the last one."
        )
    latencies = markers.latencies()
    begun = sum(committed < started_at for committed in markers.committed)
    first = begun + (len(latencies) - begun) // 4  # without the first quarter, whose runs start with empty caches
    settled = latencies[first:]
    third = len(settled) // 3
    with instance() as dagster:
        runs = [run for run in dagster.get_run_records() if run.start_time and run.start_time > started_at]
    growth = statistics.median(settled[-third:]) / statistics.median(settled[:third])
    return [
        Figure(what="commit to visible", unit="s, p50", value=statistics.median(settled)),
        Figure(what="commit to visible", unit="s, p95", value=percentile(settled, 0.95)),
        Figure(what="commit to visible", unit="s, max", value=max(settled)),
        Figure(what="commit to visible, growth", unit="x", value=growth),
        Figure(what="changes", unit="changes/s", value=traffic.counts.rate + 1 / MARKER_SECONDS),
        Figure(what="markers", unit="markers", value=len(settled)),
        Figure(what="a query", unit="s, p50", value=statistics.median(markers.queries)),
        Figure(what="runs", unit="runs", value=len(runs)),
        *(
            Figure(what=f"lag: {name}", unit="s, p50", value=value)
            for name, value in stage_lag.medians(_times(resources, markers)[first:]).items()
        ),
        *(
            Figure(what="latency", unit="s", size=round(at - markers.committed[0]), value=latency)
            for at, latency in zip(markers.committed, latencies, strict=True)
        ),
        *usage_figures(used),
    ]


def usage_figures(found: ComponentUsage) -> list[Figure]:
    """Return the memory of the sample with the largest sum, and the CPU time of the second half of the window."""
    total, components = found.memory.peak()
    return [
        Figure(what="memory, whole stack", unit="GB", value=total / 2**30),
        Figure(what="memory, growth", unit="GB/h", value=found.memory.slope() / 2**30),
        *(Figure(what=f"memory: {name}", unit="GB", value=size / 2**30) for name, size in sorted(components.items())),
        *(Figure(what=f"CPU: {name}", unit="cores", value=cores) for name, cores in sorted(found.cpu.cores().items())),
    ]


def _times(resources: Mapping[str, Any], markers: Markers) -> list[stage_lag.Times]:
    return stage_lag.of_changes(
        load("northwind").tables[0], resources, {"order_id": ORDER}, markers.committed, markers.seen
    )


def main() -> int:
    """Measure on a separate stack and print the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--rate", type=float, default=20.0, help="changes a second")
    parser.add_argument(
        "--log", type=Path, default=Path(os.devnull), help="a file for the output of `cdc-lake dev` or `cdc-lake run`"
    )
    parser.add_argument("--continuous", action="store_true", help="use `cdc-lake run` instead of `cdc-lake dev`")
    parser.add_argument("--home", help="a running stack on which the demo has run")
    recorder = Recorder(parser)
    args = parser.parse_args()
    command = ["cdc-lake", "run", "northwind"] if args.continuous else ["cdc-lake", "dev", "--port", "0"]
    with running_demo(args.home) as home, running(*command, log=args.log):
        found = measure(home, args.minutes, args.rate)
    figures = [each.model_copy(update={"value": round(each.value, 3)}) for each in found]
    table = Table("metric", "unit", "value", title=f"commit to visible, {args.rate:g} changes/s, {args.minutes:g} min")
    for each in figures:
        if each.size is None:
            table.add_row(each.what, each.unit, f"{each.value:,.2f}")
    Console(width=100).print(table)
    recorder.write(args, f"freshness_{'continuous' if args.continuous else 'triggered'}", figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
