"""The land and upsert jobs in plain Python on in-memory objects; they write what the contract requires."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

from cdc_lake.contract.objects import raw_objects
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import LandedObject, LastRecord, Manifest
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.contract.source.topic_records import fingerprint
from cdc_lake.contract.table import timeline
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.landing import land as landing
from cdc_lake.jobs.landing import pending_offsets
from cdc_lake.jobs.landing.land_spec import LandSpec
from cdc_lake_tests.fakes.source.kafka import FakeKafka
from cdc_lake_tests.helpers.memory_store import MemoryStore
from resources.errors import ResourceError
from resources.kafka.records import Message
from resources.spark.job_interface import JobRun


class FakeSpark:
    """Runs the given functions instead of the jobs."""

    def __init__(self, jobs: Mapping[Any, Callable[[Any], Any]]) -> None:
        self.jobs = dict(jobs)
        self._last: JobRun | None = None
        self.warmed = 0
        self.dead = False
        self.elsewhere: JobRun | None = None
        """The names of the runs; None for runs in this process."""

    def run(self, job: Callable[..., Any], spec: Any) -> Any:  # noqa: ANN401 - as the resource's
        """See LocalSpark."""
        found = self.jobs[job](spec)
        if self.elsewhere is not None:
            self._last = replace(self.elsewhere, job=job.__module__.rpartition(".")[2])
        return found

    def warm(self) -> None:
        """See LocalSpark."""
        self.warmed += 1

    def last_run(self) -> JobRun | None:
        """See EmrJobs."""
        return self._last

    def cancel(self) -> None:
        """See EmrJobs."""

    def require_alive(self) -> None:
        """See LocalSpark."""
        if self.dead:
            raise ResourceError("Spark's JVM has ended.", "")

    def stop(self) -> None:
        """See EmrJobs."""


def land(kafka: FakeKafka, bucket: MemoryStore, spec: LandSpec) -> landing.LandReport:
    """Run the land job: one object for each span."""
    chain = Chain(bucket, spec.pipeline, spec.topic, spec.chain)
    head = chain.head()
    spans = pending_offsets.pending(head, spec)
    objects = []
    for number, span in enumerate(spans):
        start = span.first if span.last is None else span.last.offset
        there = [m for m in kafka.peek(spec.topic, span.partition, start) if m.offset < span.next]
        messages = [m for m in there if m.offset >= span.first]
        if messages:
            pending_offsets.require_unchanged(spec, span, _last([m for m in there if m.offset < span.first]))
            objects.append(_put(bucket, spec, [(m.partition, m.offset, m.value or b"") for m in messages]))
            spans = (*spans[:number], span.model_copy(update={"last": _last(messages)}), *spans[number + 1 :])
    manifest = Manifest(
        chain=spec.chain,
        number=1 if head is None else head.number + 1,
        attempt=spec.attempt,
        pipeline=spec.pipeline,
        topic=spec.topic,
        topic_id=spec.topic_id,
        epoch=spec.epoch,
        spans=spans,
        objects=tuple(objects),
        watermark=landing.watermark(head, spec),
        committed_at=datetime.now(UTC),
    )
    chain.append(manifest)
    return landing.LandReport(manifest.number, manifest.records, len(objects), manifest.size, 0, 0.1)


def _last(messages: list[Message]) -> LastRecord | None:
    newest = max(messages, key=lambda message: message.offset, default=None)
    return None if newest is None else LastRecord(offset=newest.offset, fingerprint=fingerprint(newest.value))


def apply(bucket: MemoryStore, spec: UpsertSpec) -> upsert.UpsertReport:
    """Run the upsert job: a commit with the checkpoint, and one file."""
    before = timeline.last_commit(bucket, spec.prefix)
    new = upsert.new_manifests(bucket, spec, before)
    number = 1 if before is None else int(before.instant[:8]) - 20260000 + 1
    instant = f"2026{number:04d}000000000"
    checkpoint = timeline.Checkpoint(
        topic=spec.topic,
        topic_id=new[-1].topic_id,
        manifest=new[-1].number,
        attempt=new[-1].attempt,
        schema_version=1,
        watermark=new[-1].watermark,
    )
    body = {"partitionToWriteStats": {}, "extraMetadata": {timeline.CHECKPOINT_KEY: checkpoint.model_dump_json()}}
    bucket.write(f"{spec.prefix}.hoodie/{instant}.commit", json.dumps(body).encode())
    bucket.write(f"{spec.prefix}newest.parquet", b"x" * 100)
    events = sum(manifest.records for manifest in new)
    raw_bytes = sum(manifest.size for manifest in new)
    commit = timeline.Commit(instant, checkpoint, events, events, 0, 100, 1, "upsert", raw_bytes)
    return upsert.UpsertReport(commit, len(new), events, events, seconds=0.1)


def _put(bucket: MemoryStore, spec: LandSpec, records: list[tuple[int, int, bytes]]) -> LandedObject:
    partition, first, last = records[0][0], records[0][1], records[-1][1]
    body = raw_objects.join_lines([value for _, _, value in records])
    key = ObjectName(
        spec.pipeline, spec.topic, partition, first, last, raw_objects.EXTENSION, spec.epoch, spec.chain
    ).key
    runs = [list(group) for _, group in groupby(enumerate(records), lambda one: one[1][1] - one[0])]
    return LandedObject(
        key=key,
        partition=partition,
        first=first,
        last=last,
        records=len(records),
        bytes=len(body),
        sha256=hashlib.sha256(body).hexdigest(),
        etag=bucket.put_new(key, body),
        runs=tuple((run[0][1][1], len(run)) for run in runs),
    )
