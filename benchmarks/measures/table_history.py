"""Write a long history of a benchmark's table: manifests that are landed and applied, and commits in the timeline.

The store's proxy does not count these requests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

from benchmarks.measures.benchmark_table import BenchmarkTable, require_clean
from cdc_lake.contract.objects import raw_objects
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import LandedObject, LastRecord, Manifest, Span
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.contract.source.topic_records import fingerprint
from cdc_lake.contract.table import instants, timeline_files
from cdc_lake.jobs.apply import upsert
from cdc_lake.pipeline.checks import chain_verification

WRITERS = 8
_FILES = (".commit.requested", ".inflight", ".commit")
"""The suffixes of the files that Hudi writes for a commit."""


def write_manifests(bench: BenchmarkTable, length: int) -> None:
    """Extend the chain to `length` manifests of one record each; count, verify and apply them.

    Raises RuntimeError if the chain has another length afterwards.
    """
    chain = Chain(bench.direct.store(), bench.table.pipeline.name, bench.table.topic)
    first = chain.length()
    bench.send(first, length)
    found = bench.kafka.topic(bench.table.topic)
    topic_id = "" if found is None else found.topic_id
    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(lambda part: _write(bench, part, topic_id), _parts(first, length)))
    head = chain.head()
    if head is None or head.number != length or chain.count_records(head) != length:
        raise RuntimeError(f"Cannot write a history of {length} manifests: the chain ends at {head}.")
    require_clean(chain_verification.verify_new(chain))
    upsert.run(bench.spark, bench.table.upsert_spec(bench.direct, owner="bench"))


def write_commits(bench: BenchmarkTable, count: int) -> None:
    """Put commits of the last hour into the timeline, before the newest one, until it has `count`.

    They are copies of the newest one, and name its data files. Raises RuntimeError if one of its files is missing, and
    if the timeline has more than `count` commits.
    """
    folder, store = f"{bench.table.lake_prefix}.hoodie/", bench.direct.store()
    names = timeline_files.names(store, bench.table.lake_prefix)
    completed = sorted(name.removesuffix(".commit") for name in names if name.endswith(".commit"))
    if len(completed) > count:
        raise RuntimeError(f"Cannot measure with {count} commits: the timeline has {len(completed)} already.")
    files = {suffix: store.get(f"{folder}{completed[-1]}{suffix}") for suffix in _FILES}
    taken, new = set(completed), []
    at, end = datetime.now(UTC) - timedelta(minutes=59), instants.time_of(completed[-1])
    step = (end - at) / (count - len(completed) + 1)
    for _ in range(count - len(completed)):
        at += step
        while (instant := f"{at:%Y%m%d%H%M%S%f}"[:17]) in taken:
            at += timedelta(milliseconds=1)
        taken.add(instant)
        new.append(instant)

    def put(instant: str) -> None:
        for suffix, stored in files.items():
            if stored is None:
                raise RuntimeError(f"Cannot write commits: {folder}{completed[-1]}{suffix} is missing.")
            store.put_new(f"{folder}{instant}{suffix}", stored.body)

    with ThreadPoolExecutor(WRITERS) as pool:
        list(pool.map(put, new))


def _write(bench: BenchmarkTable, offsets: range, topic_id: str) -> None:
    """Write the object and the manifest of each offset."""
    store = bench.direct.store()
    pipeline, topic = bench.table.pipeline.name, bench.table.topic
    for offset in offsets:
        record = bench.record(offset)
        body = raw_objects.join_lines([record])
        key = ObjectName(pipeline, topic, 0, offset, offset, raw_objects.EXTENSION).key
        last = LastRecord(offset=offset, fingerprint=fingerprint(record))
        item = LandedObject(
            key=key,
            partition=0,
            first=offset,
            last=offset,
            records=1,
            bytes=len(body),
            sha256=hashlib.sha256(body).hexdigest(),
            etag=store.put_new(key, body),
            runs=((offset, 1),),
        )
        manifest = Manifest(
            number=offset + 1,
            attempt=f"history {offset}",
            pipeline=pipeline,
            topic=topic,
            topic_id=topic_id,
            spans=(Span(partition=0, first=offset, next=offset + 1, last=last),),
            objects=(item,),
            committed_at=datetime.now(UTC),
        )
        store.put_new(
            Chain(store, pipeline, topic, "").key(manifest.number), manifest.encode(), {"attempt": manifest.attempt}
        )


def _parts(first: int, end: int) -> Iterator[range]:
    """Return the offsets in parts, about four for each writer."""
    size = max(1, (end - first) // (4 * WRITERS))
    return (range(at, min(at + size, end)) for at in range(first, end, size))
