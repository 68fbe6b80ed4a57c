"""Compare HoodieStreamer with cdc-lake: a cold process, and the time from a raw object to the commit that applies it.

Runs the demo on a separate stack. First, `--rounds` times, a process of each system writes a new table from the raw
objects of Northwind's 829 events. HoodieStreamer writes one table without partitions, as cdc-lake's is, and once one
with its published layout, a partition for each order. Then `cdc-lake run northwind` lands and applies `--rate` changes
a second for `--minutes`. After that, HoodieStreamer runs in continuous mode, and copies of the raw objects of that time
are put into its source folder, at the same intervals. The first quarter of the objects is not counted. At the end, its
rows are compared with the newest event of each order.

    python -m benchmarks.whole_pipeline.hoodie_streamer --rate 200 --minutes 3
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Iterator, Mapping, Sequence

from rich.console import Console
from rich.table import Table

from benchmarks.goals import HOODIE_STREAMER
from benchmarks.measures import hudi_rs
from benchmarks.measures.commit_times import CommitTimes, latencies
from benchmarks.measures.demo_stack import running_demo, source_dsn
from benchmarks.measures.processes import running
from benchmarks.measures.usage import Usage
from benchmarks.peers.cold_process import COLUMNS
from benchmarks.peers.engines import fetch_jars
from benchmarks.peers.hoodie_streamer.process import StreamerTable, running_streamer, spark
from benchmarks.report.figures import OURS, Figure
from benchmarks.report.results import Recorder
from benchmarks.whole_pipeline.freshness import percentile
from benchmarks.write_path import cold_start
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.table import history, timeline
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.loading import load
from cdc_lake.profile import resolved
from cdc_lake_tests.helpers.source_changes.order_traffic import Traffic
from infra.artifacts.artifacts import HOODIE_STREAMER as HOODIE_STREAMER_JARS
from infra.local.stack.attach import load_endpoints

PARTITIONED = f"{HOODIE_STREAMER}, a partition for each order"
COLD, LAG = cold_start.WHAT, "raw object to commit"


class Comparison:
    """Runs both systems on the demo's stack."""

    def __init__(self) -> None:
        self._at = load_endpoints()
        self._location = location(resolved()["store"])
        self._store = self._location.store()
        self._table = load("northwind").tables[0]
        self._snapshot_manifests, self._snapshot_objects = cold_start.snapshot()
        self._started = time.time_ns()
        """Part of all names, so that the program can run again on the same stack."""

    def cold(self, rounds: int) -> Mapping[str, list[Usage]]:
        """Return the seconds and CPU seconds of a cold process of each system, up to the commit."""
        found: Mapping[str, list[Usage]] = {
            OURS: [],
            HOODIE_STREAMER: [],
            PARTITIONED: [self._cold_streamer("partitioned", partitioned=True)],
        }
        for number in range(rounds + 1):
            ours = cold_start.run(OURS, self._started + number, self._snapshot_manifests, self._snapshot_objects)
            streamer = self._cold_streamer(f"cold-{number}")
            if number > 0:  # the first round reads the files into the page cache
                found[OURS].append(ours)
                found[HOODIE_STREAMER].append(streamer)
        return found

    def _cold_streamer(self, name: str, *, partitioned: bool = False) -> Usage:
        table = self._streamer_table(name, partitioned=partitioned)
        times = table.commit_times(self._store)
        with running_streamer(table, COLUMNS, continuous=False) as streamer:

            def has_commit() -> bool:
                times.poll()
                return times.reached > 0

            streamer.await_true(has_commit)
            return streamer.usage()

    def cdc_lake(self, minutes: float, rate: float) -> tuple[list[Manifest], list[float]]:
        """Run cdc-lake with traffic; return the manifests that it wrote, and the latency of each of their objects."""
        prefix = self._table.lake_prefix

        def position(instant: str) -> int:
            checkpoint = timeline.commit_at(self._store, prefix, instant).checkpoint
            return 0 if checkpoint is None else checkpoint.manifest

        chain = Chain(self._store, self._table.pipeline.name, self._table.topic)
        before, times = chain.length(), CommitTimes(lambda: history.commits(self._store, prefix), position)
        end = time.monotonic() + minutes * 60
        with times.polled(), running("cdc-lake", "run", "northwind"):
            Traffic(source_dsn(), seed=1, rate=rate).run(lambda: time.monotonic() > end)
        manifests = list(chain.since(before))
        if not manifests:
            raise RuntimeError(f"Cannot measure cdc-lake: it landed no records in {minutes} minutes.")
        written = [(each.number, each.committed_at.timestamp()) for each in manifests for _ in each.objects]
        return manifests, latencies(written, times.found)

    def streamer(self, manifests: Sequence[Manifest]) -> tuple[list[float], int]:
        """Let HoodieStreamer read copies of the manifests' objects.

        Returns the latency of each object, and the number of orders whose row is not their newest event.
        """
        table = self._streamer_table("continuous")
        times = table.commit_times(self._store)
        with running_streamer(table, COLUMNS, continuous=True) as streamer, times.polled():
            streamer.await_true(lambda: times.reached > 0)
            written = self._replay(manifests, table.source)
            modified = {item.key: round(item.modified.timestamp() * 1000) for item in self._store.scan(table.source)}
            last = max(modified[key] for key, _ in written)
            streamer.await_true(lambda: times.reached >= last)
        found = latencies([(modified[key], at) for key, at in written], times.found)
        return found, self._outdated(table, list(modified))

    def _outdated(self, table: StreamerTable, objects: Sequence[str]) -> int:
        newest: dict[int, int] = {}
        for event in (json.loads(line) for key in objects for line in self._body(key).splitlines()):
            newest[event["order_id"]] = max(event["__lsn"], newest.get(event["order_id"], 0))
        rows = [row for batch in hudi_rs.batches(self._location, table.table) for row in batch.to_pylist()]
        found = {row["order_id"]: row["__lsn"] for row in rows}
        return sum(found.get(order) != lsn for order, lsn in newest.items())

    def _replay(self, manifests: Sequence[Manifest], folder: str) -> list[tuple[str, float]]:
        """Put the manifests' objects at the manifests' intervals; return their keys and times."""
        started, written = time.time(), []
        for manifest in manifests:
            due = started + (manifest.committed_at - manifests[0].committed_at).total_seconds()
            bodies = {item.key: self._body(item.key) for item in manifest.objects}
            time.sleep(max(0.0, due - time.time()))
            for key, body in bodies.items():
                written.append((self._put(folder, key, body), time.time()))
        return written

    def _streamer_table(self, name: str, *, partitioned: bool = False) -> StreamerTable:
        """Return a new table, whose source folder has the objects of the 829 events."""
        folder = f"peers/streamer-{self._started}-{name}"
        for uri in self._snapshot_objects:
            key = uri.split("/", 3)[3]
            self._put(f"{folder}-source", key, self._body(key))
        return StreamerTable(self._at, f"{folder}-source", folder, partitioned)

    def _put(self, folder: str, key: str, body: bytes) -> str:
        """Put a copy of an object into a folder; return its key."""
        copy = f"{folder}/{key.replace('/', '-')}"
        self._store.put_new(copy, body)
        return copy

    def _body(self, key: str) -> bytes:
        found = self._store.get(key)
        if found is None:
            raise RuntimeError(f"Cannot measure HoodieStreamer: object {key} does not exist.")
        return found.body


def figures(costs: Mapping[str, Sequence[Usage]], lags: Mapping[str, Sequence[float]]) -> Iterator[Figure]:
    """Yield the medians of the costs, and percentiles of the latencies without their first quarter."""
    for system, found in costs.items():
        seconds, cpu = ([getattr(each, name) for each in found] for name in ("seconds", "cpu_seconds"))
        yield Figure(what=COLD, unit="s", system=system, value=round(statistics.median(seconds), 2))
        yield Figure(what=COLD, unit="CPU s", system=system, value=round(statistics.median(cpu), 2))
    for system, values in lags.items():
        settled = values[len(values) // 4 :]
        yield Figure(what=LAG, unit="s, p50", system=system, value=round(statistics.median(settled), 2))
        yield Figure(what=LAG, unit="s, p95", system=system, value=round(percentile(settled, 0.95), 2))
        yield Figure(what=LAG, unit="objects", system=system, value=len(settled))


def main() -> int:
    """Run it, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--rate", type=float, default=200.0, help="changes a second")
    parser.add_argument("--home", help="a running stack on which the demo has run")
    recorder = Recorder(parser)
    options = parser.parse_args()
    spark()
    fetch_jars(HOODIE_STREAMER_JARS)
    with running_demo(options.home):
        comparison = Comparison()
        costs = comparison.cold(options.rounds)
        manifests, ours = comparison.cdc_lake(options.minutes, options.rate)
        streamer, outdated = comparison.streamer(manifests)
    found = [
        *figures(costs, {OURS: ours, HOODIE_STREAMER: streamer}),
        Figure(what="rows that are not the newest event", unit="orders", system=HOODIE_STREAMER, value=outdated),
    ]
    table = Table("what", "unit", "system", "value", title="cdc-lake and HoodieStreamer 0.14")
    for each in found:
        table.add_row(each.what, each.unit, each.system, f"{each.value:,.2f}")
    Console(width=110).print(table)
    recorder.write(options, "hoodie_streamer", found)
    return 0


if __name__ == "__main__":
    sys.exit(main())
