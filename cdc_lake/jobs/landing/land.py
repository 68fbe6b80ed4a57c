"""land: write a bounded range of a Kafka topic to raw objects, and commit it with one manifest (design, section 4).

The caller fixes the end of the range; the start is the end of the manifest chain. An interrupted run leaves objects
that no manifest lists; the next run writes what it needs again.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import EpochUnopenedError, OffsetsExpiredError, RaceLostError, TopicRecreatedError
from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import LandedObject, LastRecord, Manifest, Span
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.secret_fields import OpenSettings
from cdc_lake.contract.table import lease
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.jobs.executor_errors import contract_errors
from cdc_lake.jobs.landing import kafka_options
from cdc_lake.jobs.landing.raw_writer import WRITTEN_SCHEMA, RawWriter, SeenRecord, too_many_dead_letters

MAX_ATTEMPTS = 5


@dataclass(frozen=True)
class LandSpec:
    """What to land, from where to where.

    `begins` and `ends` are offsets by partition, fixed before the run: the earliest that the broker still
    has, and the last stable offset. `kafka` are options of Spark's Kafka source without their prefix `kafka.`.
    `chain` is the id of the manifest chain, and `head` the number of its newest manifest, 0 for none: both read before
    `topic_id`, `begins` and `ends`. A manifest after `head` can lie past `ends`, since another run landed it meanwhile.
    `claim` is the landing lease under which all of these were read, so that nothing is landed of a pipeline that is
    started over meanwhile; landing runs need none of each other.
    """

    location: S3Location
    pipeline: str
    topic: str
    topic_id: str
    begins: Mapping[int, int]
    ends: Mapping[int, int]
    chain: str
    head: int
    kafka: OpenSettings
    watermark: Watermark | None = None
    epoch: int = 0
    records_per_object: int = 100_000
    bytes_per_object: int = 64 * 2**20
    record_bytes: int = 8 * 2**20
    """A larger record becomes a dead letter; brokers accept twice this size."""
    dead_letter_limit: int = 1000
    """With more dead letters the run fails: the cause is then probably not in the records."""
    claim: lease.Claim | None = None
    attempt: str = field(default_factory=lambda: str(uuid.uuid4()))


@dataclass(frozen=True)
class LandReport:
    """What one run committed; `manifest` is None where there was nothing new."""

    manifest: int | None
    records: int
    objects: int
    bytes: int
    dead_letters: int
    seconds: float


def pending(head: Manifest | None, spec: LandSpec) -> tuple[Span, ...]:
    """Return the offsets that are not landed yet, one span for each partition, empty spans included.

    Raises OffsetsExpiredError where retention was faster, TopicRecreatedError where the topic is another,
    or lost partitions or records at its end, EpochUnopenedError where the chain is of another epoch. What another
    run landed past `spec.ends` meanwhile is no loss.
    """
    epoch = 0 if head is None else head.epoch
    if epoch != spec.epoch:
        raise EpochUnopenedError(
            f"epoch {spec.epoch} of pipeline {spec.pipeline} has begun, and topic {spec.topic} is landed in epoch "
            f"{epoch}. Nothing was landed. Run this again; if it fails again, a resnapshot was interrupted: run "
            f"`cdc-lake resnapshot {spec.pipeline}` again."
        )
    if head is not None and head.topic_id != spec.topic_id:
        raise TopicRecreatedError(
            f"topic {spec.topic} was deleted and re-created (id {head.topic_id}, now {spec.topic_id}). Nothing was "
            f"landed. `cdc-lake resnapshot {spec.pipeline}` continues from a new snapshot."
        )
    landed = {} if head is None else head.next_offsets()
    last = {} if head is None else head.last_records()
    overtaken = head is not None and head.number > spec.head
    return tuple(
        _pending_span(spec, partition, landed.get(partition, 0), overtaken).model_copy(
            update={"last": last.get(partition)}
        )
        for partition in sorted({*landed, *spec.ends})
    )


def has_work(head: Manifest | None, spans: Sequence[Span]) -> bool:
    """Whether there is something to land: records, or the first manifest of a chain.

    An empty topic gets a first manifest too: the lake then creates an empty table, and the deletion of a topic without
    records is detected.
    """
    return head is None or _has_records(spans)


def _has_records(spans: Sequence[Span]) -> bool:
    return any(span.first < span.next for span in spans)


def _pending_span(spec: LandSpec, partition: int, first: int, overtaken: bool) -> Span:
    """Return the offsets from `first` on that are not landed yet of one partition."""
    where = f"topic {spec.topic}, partition {partition}"
    end = spec.ends.get(partition, 0)
    if end < first:
        if overtaken:
            return Span(partition=partition, first=first, next=first)
        raise TopicRecreatedError(
            f"{where} ends at offset {end}, but offsets up to {first} are landed: the topic lost records or is "
            f"another one; nothing was landed. Compare `cdc-lake topic peek {spec.topic}` with `cdc-lake raw ls "
            f"{spec.pipeline}`; `cdc-lake resnapshot {spec.pipeline}` goes on from a new snapshot"
        )
    begin = spec.begins.get(partition, 0)
    if begin > first:
        raise OffsetsExpiredError(
            f"{where}: offsets {first} to {begin - 1} expired before they were landed. Nothing was skipped. "
            f"`cdc-lake resnapshot {spec.pipeline}` continues from a new snapshot. Then raise the topic's retention or "
            "land more often."
        )
    return Span(partition=partition, first=first, next=end)


def require_unchanged(spec: LandSpec, span: Span, found: LastRecord | None) -> None:
    """Raise TopicRecreatedError where the newest committed record before a span is not the one that was landed there.

    The topic then lost its tail and was written on: what was written below the span's start would never be landed.
    """
    if span.last is None or found == span.last:
        return
    if found is None:
        what = "has no record there any more"
    elif found.offset == span.last.offset:
        what = "has another record there"
    else:
        what = f"has another record at offset {found.offset}"
    raise TopicRecreatedError(
        f"topic {spec.topic}, partition {span.partition} lost records that were landed, and was written on: the last "
        f"one that was landed has offset {span.last.offset}, and the topic {what}. No manifest was written. Compare "
        f"`cdc-lake topic peek {spec.topic}` with `cdc-lake raw ls {spec.pipeline}`; `cdc-lake resnapshot "
        f"{spec.pipeline}` goes on from a new snapshot"
    )


def watermark(head: Manifest | None, spec: LandSpec) -> Watermark | None:
    """Return the next manifest's watermark: the spec's, else that of the newest manifest."""
    return spec.watermark if spec.watermark is not None or head is None else head.watermark


@contract_errors()
def run(spark: SparkSession, spec: LandSpec) -> LandReport:
    """Land the records between the end of the chain and `spec.ends`; an empty chain gets a manifest in any case.

    Raises what pending(), require_unchanged() and Chain.append() raise, TooManyDeadLettersError and LeaseLostError.
    After a lost race it starts over from the new end.
    """
    started = time.monotonic()
    store = spec.location.store()
    chain = Chain(store, spec.pipeline, spec.topic, spec.chain)
    for race in range(MAX_ATTEMPTS):
        head = chain.head()
        spans = pending(head, spec)
        if not has_work(head, spans):
            return LandReport(None, 0, 0, 0, 0, time.monotonic() - started)
        objects: tuple[LandedObject, ...] = ()
        letters: list[dead_letters.DeadLetter] = []
        if _has_records(spans):
            spans, objects, letters = _write(spark, spec, spans)
        failpoints.reached("land.before_dead_letters")
        if letters and spec.claim is not None:
            lease.check(store, spec.claim)
        dead_letters.put(store, spec.pipeline, letters)
        try:
            manifest = commit(chain, spec, head, spans, objects, len(letters))
        except RaceLostError:
            if race + 1 == MAX_ATTEMPTS:
                raise
            continue
        seconds = time.monotonic() - started
        return LandReport(manifest.number, manifest.records, len(objects), manifest.size, len(letters), seconds)
    raise AssertionError("unreachable: the last race raises")


def commit(
    chain: Chain,
    spec: LandSpec,
    head: Manifest | None,
    spans: tuple[Span, ...],
    objects: tuple[LandedObject, ...],
    letters: int = 0,
) -> Manifest:
    """Commit a batch after `head`, while the claim holds. Raises what Chain.append() raises, and LeaseLostError."""
    manifest = Manifest(
        chain=chain.id,
        number=1 if head is None else head.number + 1,
        attempt=spec.attempt,
        pipeline=spec.pipeline,
        topic=spec.topic,
        topic_id=spec.topic_id,
        epoch=spec.epoch,
        spans=spans,
        objects=objects,
        dead_letters=letters,
        watermark=watermark(head, spec),
        committed_at=datetime.now(UTC),
    )
    failpoints.reached("land.before_manifest")
    if spec.claim is not None:
        lease.check(chain.store, spec.claim)
    chain.append(manifest)
    failpoints.reached("land.after_manifest")
    return manifest


def _write(
    spark: SparkSession, spec: LandSpec, spans: tuple[Span, ...]
) -> tuple[tuple[Span, ...], tuple[LandedObject, ...], list[dead_letters.DeadLetter]]:
    """Put the objects of the spans. Return the spans with their last records, the objects, and the dead letters."""
    writer = RawWriter(
        spec.location,
        spec.pipeline,
        spec.topic,
        spec.attempt,
        spec.records_per_object,
        spec.bytes_per_object,
        spec.epoch,
        spec.record_bytes,
        spec.dead_letter_limit,
        spec.chain,
        {span.partition: span.first for span in spans},
    )
    starts = {span.partition: read_from(spec, span) for span in spans}
    rows = _read(spark, spec, spans, starts).mapInArrow(writer, WRITTEN_SCHEMA).collect()
    objects = [LandedObject.model_validate_json(row.json) for row in rows if row.kind == "object"]
    letters = [dead_letters.DeadLetter.model_validate_json(row.json) for row in rows if row.kind == "dead_letter"]
    before = _newest(row.json for row in rows if row.kind == "before")
    for span in spans:
        if starts[span.partition] < span.first:
            require_unchanged(spec, span, before.get(span.partition))
    if len(letters) > spec.dead_letter_limit:
        last = letters[-1]
        raise too_many_dead_letters(spec.topic, spec.dead_letter_limit, last.reason, last.partition, last.offset)
    ordered = sorted(objects, key=lambda item: (item.partition, item.first))
    newest = _newest(row.json for row in rows if row.kind == "last")
    read = (span.model_copy(update={"last": newest.get(span.partition, span.last)}) for span in spans)
    return tuple(read), tuple(ordered), letters


def read_from(spec: LandSpec, span: Span) -> int:
    """Where to read a partition from: its last landed record, which is compared with what the topic has there now.

    Nothing is compared where nothing is new, and where retention has removed that record.
    """
    nothing_new = span.first == span.next
    if nothing_new or span.last is None or span.last.offset < spec.begins.get(span.partition, 0):
        return span.first
    return span.last.offset


def _newest(rows: Iterable[str]) -> dict[int, LastRecord]:
    """The newest of the records that executors report, by partition."""
    seen = sorted((SeenRecord.model_validate_json(row) for row in rows), key=lambda each: each.record.offset)
    return {each.partition: each.record for each in seen}


def _read(spark: SparkSession, spec: LandSpec, spans: tuple[Span, ...], starts: Mapping[int, int]) -> DataFrame:
    """A bounded batch read; a Spark partition holds a contiguous range of one topic partition, in order."""
    reader = spark.read.format("kafka").options(**kafka_options.options(spark, spec.kafka))
    return (
        reader.option("kafka.isolation.level", "read_committed")
        .option("assign", json.dumps({spec.topic: [span.partition for span in spans]}))
        .option("startingOffsets", json.dumps({spec.topic: {str(p): first for p, first in starts.items()}}))
        .option("endingOffsets", json.dumps({spec.topic: {str(s.partition): s.next for s in spans}}))
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .load()
        .select("partition", "offset", "value", "key", "headers")
    )
