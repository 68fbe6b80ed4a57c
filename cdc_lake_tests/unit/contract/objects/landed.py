"""Manifests and raw objects as landing writes them, for the tests of cdc_lake/contract."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import UTC, datetime

from cdc_lake.contract.objects import raw_objects
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import LandedObject, Manifest, Span
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.jobs.landing.raw_writer import consecutive_runs
from cdc_lake_tests.helpers.memory_store import MemoryStore

PIPELINE = "shop"
TOPIC = "shop.public.orders"
TOPIC_ID = "AAAAAAAAAAAAAAAAAAAAAQ"


def manifest(
    number: int,
    spans: Mapping[int, tuple[int, int]],
    *,
    topic_id: str = TOPIC_ID,
    attempt: str | None = None,
    objects: tuple[LandedObject, ...] = (),
    committed_at: datetime | None = None,
    chain: str = "",
) -> Manifest:
    """Return a manifest with the offsets [first, next) of each partition."""
    return Manifest(
        chain=chain,
        number=number,
        attempt=attempt or f"attempt of {number}",
        pipeline=PIPELINE,
        topic=TOPIC,
        topic_id=topic_id,
        spans=tuple(Span(partition=p, first=first, next=end) for p, (first, end) in spans.items()),
        objects=objects,
        committed_at=committed_at or datetime(2024, 1, 1, tzinfo=UTC),
    )


def chain_of(count: int) -> tuple[MemoryStore, Chain]:
    """Return a chain of `count` manifests of ten offsets each, and its store with the request count reset."""
    store = MemoryStore()
    chain = Chain(store, PIPELINE, TOPIC)
    for number in range(1, count + 1):
        chain.append(manifest(number, {0: (10 * (number - 1), 10 * number)}))
    store.forget_requests()
    return store, chain


def landed(store: MemoryStore, records: Mapping[int, bytes], partition: int = 0) -> LandedObject:
    """Put an object with these records by offset; return its entry in a manifest."""
    offsets = sorted(records)
    key = ObjectName(PIPELINE, TOPIC, partition, offsets[0], offsets[-1], raw_objects.EXTENSION).key
    body = raw_objects.join_lines([records[offset] for offset in offsets])
    return LandedObject(
        key=key,
        partition=partition,
        first=offsets[0],
        last=offsets[-1],
        records=len(offsets),
        bytes=len(body),
        sha256=hashlib.sha256(body).hexdigest(),
        etag=store.put_new(key, body),
        runs=tuple(consecutive_runs(offsets)),
    )
