"""Measure HoodieStreamer beside cdc-lake: a cold process, and the time from a raw object to the commit that applies it.

Runs the demo on a separate stack. First, `--rounds` times, a process of each system writes a new table from the raw
objects of Northwind's 829 events. HoodieStreamer writes one table without partitions, as cdc-lake's is, and once one
with its published layout, a partition for each order. Then `cdc-lake run northwind` lands and applies `--rate` changes
a second for `--minutes`. The raw objects of that time are then put into a second folder, at the same intervals, from
which HoodieStreamer writes a table in continuous mode. The first quarter of the objects is not counted. At the end, its
rows are compared with the newest event of each order.

    python -m benchmarks.whole_pipeline.hoodie_streamer --rate 200 --minutes 3
"""

from __future__ import annotations

import argparse
import bisect
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate

from rich.console import Console
from rich.table import Table

from benchmarks.goals import HOODIE_STREAMER
from benchmarks.measures import hudi_rs
from benchmarks.measures.demo_stack import running_demo, source_dsn
from benchmarks.measures.processes import running
from benchmarks.measures.usage import Usage, cpu_seconds
from benchmarks.peers.cold import COLUMNS
from benchmarks.peers.hoodie_streamer import environment, process
from benchmarks.peers.hoodie_streamer.process import Streamed
from benchmarks.report.figures import OURS, Figure
from benchmarks.report.results import Recorder
from benchmarks.write_path import cold_start
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import history, timeline
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.loading import load
from cdc_lake.profile import resolved
from cdc_lake_tests.helpers.source_changes.order_traffic import Traffic
from infra.local.stack.attach import load_endpoints

LAYOUT = f"{HOODIE_STREAMER}, its layout"
COLD, LAG = cold_start.WHAT, "raw object to commit"


class Commits:
    """The commits of a table, with the times at which they were first listed, in seconds since 1970."""

    def __init__(self, instants: Callable[[], Sequence[str]]) -> None:
        self.seen: dict[str, float] = {}
        self._instants = instants

    def look(self) -> None:
        """List the table's commits."""
        for instant in self._instants():
            self.seen.setdefault(instant, time.time())

    @contextmanager
    def watched(self) -> Iterator[None]:
        """Look ten times a second during the block, and once after it."""
        stop = threading.Event()

        def watch() -> None:
            while not stop.wait(process.LOOK_SECONDS):
                self.look()

        thread = threading.Thread(target=watch)
        thread.start()
        try:
            yield
        finally:
            stop.set()
            thread.join()
            self.look()


def latencies(written: Sequence[tuple[int, float]], commits: Sequence[tuple[int, float]]) -> list[float]:
    """Return for each object the seconds until the first commit that contains it.

    `written` has the position and the time of each object, `commits` the position up to which each commit has applied
    them and its time; both are ordered by time. An object that no commit contains raises ValueError.
    """
    reached = list(accumulate((position for position, _ in commits), max))
    found = []
    for position, at in written:
        number = bisect.bisect_left(reached, position)
        if number == len(commits):
            raise ValueError(f"no commit contains the object at position {position}")
        found.append(commits[number][1] - at)
    return found


class Comparison:
    """Both systems on the stack of the demo."""

    def __init__(self) -> None:
        self._at = load_endpoints()
        self._location = location(resolved()["store"])
        self._store = self._location.store()
        self._table = load("northwind").tables[0]

    def cold(self, rounds: int) -> dict[str, list[Usage]]:
        """Return what a cold process of each system costs, from its start to the commit."""
        manifests, objects = cold_start.snapshot()
        keys = [uri.split("/", 3)[3] for uri in objects]
        found = {OURS: list[Usage](), HOODIE_STREAMER: list[Usage](), LAYOUT: [self._once("layout", keys, True)]}
        for number in range(rounds + 1):
            used = {
                OURS: cold_start.run(OURS, 100 + number, manifests, objects),
                HOODIE_STREAMER: self._once(f"cold-{number}", keys),
            }
            for system, cost in (
                used.items() if number > 0 else ()
            ):  # the first round reads the files for the first time
                found[system].append(cost)
        return found

    def _once(self, name: str, keys: Sequence[str], partitioned: bool = False) -> Usage:
        streamed = self._streamed(name, partitioned)
        self._copy(keys, streamed.source)
        commits = Commits(lambda: streamed.commits(self._store))
        with process.running(streamed, COLUMNS, continuous=False) as streamer, commits.watched():
            streamer.await_true(lambda: len(commits.seen) > 0)
            [at] = commits.seen.values()
            return Usage(at - streamer.process.create_time(), cpu_seconds(streamer.process))

    def ours(self, minutes: float, rate: float) -> tuple[list[Manifest], list[float]]:
        """Run cdc-lake with traffic; return the manifests that it wrote, and their latencies."""
        table, chain = self._table, Chain(self._store, self._table.pipeline.name, self._table.topic)
        before, commits = chain.length(), Commits(lambda: history.commits(self._store, table.lake_prefix))
        end = time.monotonic() + minutes * 60
        with commits.watched(), running("cdc-lake", "run", "northwind"):
            Traffic(source_dsn(), seed=1, rate=rate).run(lambda: time.monotonic() > end)
        manifests = list(chain.since(before))
        written = [(each.number, each.committed_at.timestamp()) for each in manifests]
        found = [(timeline.commit_at(self._store, table.lake_prefix, name), at) for name, at in commits.seen.items()]
        applied = [(each.checkpoint.manifest, at) for each, at in found if each.checkpoint is not None]
        return manifests, latencies(written, applied)

    def theirs(self, manifests: Sequence[Manifest]) -> tuple[list[float], int]:
        """Let HoodieStreamer read the objects of these manifests, at the same intervals.

        Returns their latencies, and the number of orders whose row is not their newest event.
        """
        streamed = self._streamed("continuous")
        _, objects = cold_start.snapshot()
        self._copy([uri.split("/", 3)[3] for uri in objects], streamed.source)
        commits = Commits(lambda: streamed.commits(self._store))
        with process.running(streamed, COLUMNS, continuous=True) as streamer, commits.watched():
            streamer.await_true(lambda: len(commits.seen) > 0)
            put = self._replay(manifests, streamed.source)
            modified = {item.key: round(item.modified.timestamp() * 1000) for item in self._store.scan(streamed.source)}
            last = max(modified[key] for key, _ in put)
            streamer.await_true(lambda: streamed.checkpoint(self._store, max(commits.seen)) >= last)
        applied = [(streamed.checkpoint(self._store, name), at) for name, at in commits.seen.items()]
        return latencies([(modified[key], at) for key, at in put], applied), self._outdated(streamed, list(modified))

    def _outdated(self, streamed: Streamed, keys: Sequence[str]) -> int:
        newest: dict[int, int] = {}
        for event in (json.loads(line) for key in keys for line in _body(self._store, key).splitlines()):
            newest[event["order_id"]] = max(event["__lsn"], newest.get(event["order_id"], 0))
        rows = [row for batch in hudi_rs.batches(self._location, streamed.table) for row in batch.to_pylist()]
        found = {row["order_id"]: row["__lsn"] for row in rows}
        return sum(found.get(order) != lsn for order, lsn in newest.items())

    def _replay(self, manifests: Sequence[Manifest], folder: str) -> list[tuple[str, float]]:
        """Put the manifests' objects at the manifests' intervals; return their keys and times."""
        started, put = time.time(), []
        for manifest in manifests:
            due = started + (manifest.committed_at - manifests[0].committed_at).total_seconds()
            time.sleep(max(0.0, due - time.time()))
            for key in self._copy([item.key for item in manifest.objects], folder):
                put.append((key, time.time()))
        return put

    def _copy(self, keys: Sequence[str], folder: str) -> list[str]:
        """Copy objects into a folder; return the new keys."""
        copied = []
        for key in keys:
            copied.append(f"{folder}/{key.replace('/', '-')}")
            self._store.put_new(copied[-1], _body(self._store, key))
        return copied

    def _streamed(self, name: str, partitioned: bool = False) -> Streamed:
        return Streamed(self._at, f"peers/streamer-{name}-source", f"peers/streamer-{name}", partitioned)


def _body(store: ObjectStore, key: str) -> bytes:
    found = store.get(key)
    if found is None:
        raise RuntimeError(f"Cannot measure HoodieStreamer: raw object {key} does not exist.")
    return found.body


def figures(costs: dict[str, list[Usage]], lags: dict[str, list[float]]) -> Iterator[Figure]:
    """Yield the medians of the costs, and percentiles of the latencies without their first quarter."""
    for system, found in costs.items():
        seconds, cpu = ([getattr(each, name) for each in found] for name in ("seconds", "cpu_seconds"))
        yield Figure(what=COLD, unit="s", system=system, value=round(statistics.median(seconds), 2))
        yield Figure(what=COLD, unit="CPU s", system=system, value=round(statistics.median(cpu), 2))
    for system, values in lags.items():
        settled = sorted(values[len(values) // 4 :])
        for share, unit in ((0.5, "s, p50"), (0.95, "s, p95")):
            value = settled[min(len(settled) - 1, int(len(settled) * share))]
            yield Figure(what=LAG, unit=unit, system=system, value=round(value, 2))
        yield Figure(what=LAG, unit="objects", system=system, value=len(values))


def main() -> int:
    """Run it, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--rate", type=float, default=200.0, help="changes a second")
    parser.add_argument("--home", help="a running stack on which the demo has run")
    recorder = Recorder(parser)
    options = parser.parse_args()
    environment.spark()
    environment.jars()
    with running_demo(options.home):
        comparison = Comparison()
        costs = comparison.cold(options.rounds)
        manifests, ours = comparison.ours(options.minutes, options.rate)
        theirs, outdated = comparison.theirs(manifests)
    found = [
        *figures(costs, {OURS: ours, HOODIE_STREAMER: theirs}),
        Figure(what="rows that are not the newest event", unit="orders", system=HOODIE_STREAMER, value=outdated),
    ]
    table = Table("what", "unit", "system", "value", title="cdc-lake and HoodieStreamer 0.14")
    for each in found:
        table.add_row(each.what, each.unit, each.system, f"{each.value:,.2f}")
    Console(width=100).print(table)
    recorder.write(options, "hoodie_streamer", found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
