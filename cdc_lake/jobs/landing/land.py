"""land: write a bounded range of a Kafka topic to raw objects, and commit it with one manifest.

The caller fixes the end of the range; the start is the end of the manifest chain. An interrupted run leaves objects
that no manifest lists; the next run writes what it needs again (docs/decisions/0004-landing-by-offset.md).
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import EpochUnopenedError, OffsetsExpiredError, RaceLostError, TopicRecreatedError
from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import LandedObject, LastRecord, Manifest, Span
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.transforms import TableTransforms
from cdc_lake.contract.secret_fields import OpenSettings
from cdc_lake.contract.source.schema_registry import RegistryLocation
from cdc_lake.contract.table import lease
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.jobs.executor_errors import contract_errors
from cdc_lake.jobs.landing import dead_letter_writer, kafka_options, typed_rows, unlisted
from cdc_lake.jobs.landing.raw_formats import LandingFormat
from cdc_lake.jobs.landing.raw_writer import WRITTEN_SCHEMA, RawWriter, SeenRecord
from cdc_lake.jobs.landing.typed_rows import TypedLanding

MAX_ATTEMPTS = 5


@dataclass(frozen=True)
class LandSpec:
    """The input of one landing run.

    `begins` and `ends` are offsets by partition, fixed before the run: the earliest offset that the broker still has,
    and the last stable offset. `kafka` are options of Spark's Kafka source without their prefix `kafka.`. `chain` is
    the id of the manifest chain, and `head` the number of its newest manifest, 0 for an empty chain: both were read
    before `topic_id`, `begins` and `ends`. A manifest after `head` can end after `ends`, if another run landed it
    meanwhile. `claim` is the landing lease under which all of these were read: without it, records could be landed
    while a reset runs. It is not needed to exclude concurrent landing runs.
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
    landing: LandingFormat = "json"
    registry: RegistryLocation | None = None
    """The registry of a topic in Avro; None for one in JSON."""
    typed: TypedLanding | None = None
    """How to decode records; None if they are not decoded, and the objects contain their values."""
    changes: TableTransforms | None = None
    """The transforms to apply to the records; None without any."""
    claim: lease.Claim | None = None
    attempt: str = field(default_factory=lambda: str(uuid.uuid4()))


@dataclass(frozen=True)
class LandReport:
    """The result of one run; `manifest` is None if there was nothing to land."""

    manifest: int | None
    records: int
    objects: int
    bytes: int
    dead_letters: int
    seconds: float


def pending(head: Manifest | None, spec: LandSpec) -> tuple[Span, ...]:
    """Return the offsets that are not landed yet, one span for each partition, including empty spans.

    Raises OffsetsExpiredError if records expired before they were landed, TopicRecreatedError if the topic was
    re-created or lost partitions or records at its end, and EpochUnopenedError if the chain belongs to another epoch.
    Records that another run has landed after `spec.ends` do not count as lost.
    """
    epoch = 0 if head is None else head.epoch
    if epoch != spec.epoch:
        raise EpochUnopenedError(
            f"Cannot land topic {spec.topic}: epoch {spec.epoch} of pipeline {spec.pipeline} has begun, but the "
            f"topic's manifests are in epoch {epoch}. Nothing was landed. Run this again; if it fails again, a "
            f"resnapshot was interrupted: run `cdc-lake resnapshot {spec.pipeline}` again."
        )
    if head is not None and head.topic_id != spec.topic_id:
        raise recreated_error(spec.pipeline, spec.topic, head.topic_id, spec.topic_id)
    landed = {} if head is None else head.next_offsets()
    last = {} if head is None else head.last_records()
    overtaken = head is not None and head.number > spec.head
    return tuple(
        _pending_span(spec, partition, landed.get(partition, 0), overtaken).model_copy(
            update={"last": last.get(partition)}
        )
        for partition in sorted({*landed, *spec.ends})
    )


def recreated_error(pipeline: str, topic: str, before: str, now: str) -> TopicRecreatedError:
    """Return the error for a topic that has another id than before: it may have lost records."""
    return TopicRecreatedError(
        f"Cannot land topic {topic}: it was deleted and re-created (id {before}, now {now}). Nothing was landed. "
        f"`cdc-lake resnapshot {pipeline}` continues from a new snapshot."
    )


def has_work(head: Manifest | None, spans: Sequence[Span]) -> bool:
    """Return whether there is something to land: records, or the first manifest of a chain.

    An empty topic gets a first manifest too: the lake then creates an empty table, and the deletion of a topic without
    records is detected.
    """
    return head is None or _has_records(spans)


def _has_records(spans: Sequence[Span]) -> bool:
    return any(span.first < span.next for span in spans)


def _pending_span(spec: LandSpec, partition: int, first: int, overtaken: bool) -> Span:
    """Return the offsets of one partition from `first` on that are not landed yet."""
    what = f"Cannot land topic {spec.topic}"
    end = spec.ends.get(partition, 0)
    if end < first:
        if overtaken:
            return Span(partition=partition, first=first, next=first)
        raise TopicRecreatedError(
            f"{what}: partition {partition} ends at offset {end}, but offsets up to {first - 1} are landed. The topic"
            f" lost records, or was replaced. Nothing was landed. Compare `cdc-lake topic peek {spec.topic}` with"
            f" `cdc-lake raw ls {spec.pipeline}`. `cdc-lake resnapshot {spec.pipeline}` continues from a new snapshot."
        )
    begin = spec.begins.get(partition, 0)
    if begin > first:
        raise OffsetsExpiredError(
            f"{what}: offsets {first} to {begin - 1} of partition {partition} expired before they were landed. Nothing "
            f"was skipped. `cdc-lake resnapshot {spec.pipeline}` continues from a new snapshot. Then raise the topic's "
            "retention or land more often."
        )
    return Span(partition=partition, first=first, next=end)


def require_unchanged(spec: LandSpec, span: Span, found: LastRecord | None) -> None:
    """Raise TopicRecreatedError if the newest committed record before a span is not the one that was landed.

    The topic then lost its newest records, and new ones took their offsets: these would never be landed.
    """
    if span.last is None or found == span.last:
        return
    if found is None:
        what = "has no record at that offset any more"
    elif found.offset == span.last.offset:
        what = "has another record at that offset"
    else:
        what = f"has another record at offset {found.offset}"
    raise TopicRecreatedError(
        f"Cannot land topic {spec.topic}: partition {span.partition} lost records that were landed, and other records "
        f"were written after them. The last landed record has offset {span.last.offset}, and the topic {what}. No "
        f"manifest was written. Compare `cdc-lake topic peek {spec.topic}` with `cdc-lake raw ls {spec.pipeline}`. "
        f"`cdc-lake resnapshot {spec.pipeline}` continues from a new snapshot."
    )


def watermark(head: Manifest | None, spec: LandSpec) -> Watermark | None:
    """Return the next manifest's watermark: that of the spec, or else that of the newest manifest."""
    return spec.watermark if spec.watermark is not None or head is None else head.watermark


WriteRecords = Callable[[RawWriter, Mapping[int, tuple[int, int]]], Iterable[tuple[str, str]]]
"""Reads the committed records of a topic in ranges of offsets (first and next, by partition), passes them to the writer
in order, one partition after another, and returns its rows."""


@contract_errors()
def run(spark: SparkSession, spec: LandSpec) -> LandReport:
    """Land the records between the end of the chain and `spec.ends`, with Spark. Raises what land() raises."""

    def write(writer: RawWriter, ranges: Mapping[int, tuple[int, int]]) -> list[tuple[str, str]]:
        records = _read(spark, spec, ranges)
        if spec.typed is not None:
            versions = captured_schema.require_versions(spec.location.store(), spec.pipeline, spec.typed.source_table)
            records = typed_rows.typed(
                records, versions, spec.typed, spec.epoch, spec.record_bytes, spec.registry, spec.changes
            )
        rows = records.mapInArrow(writer, WRITTEN_SCHEMA).collect()
        return [(row.kind, row.json) for row in rows]

    return land(spec, write)


def land(spec: LandSpec, write: WriteRecords) -> LandReport:
    """Land the records between the end of the chain and `spec.ends`; an empty chain gets a manifest in any case.

    Raises what pending(), require_unchanged() and Chain.append() raise, TooManyDeadLettersError and LeaseLostError.
    Starts over from the new end of the chain if another run appends a manifest first.
    """
    started = time.monotonic()
    store = spec.location.store()
    chain = Chain(store, spec.pipeline, spec.topic, spec.chain)
    if spec.typed is not None and spec.claim is not None:
        _delete_unlisted(chain, spec, spec.claim)
    for race in range(MAX_ATTEMPTS):
        head = chain.head()
        spans = pending(head, spec)
        if not has_work(head, spans):
            return LandReport(None, 0, 0, 0, 0, time.monotonic() - started)
        objects: tuple[LandedObject, ...] = ()
        letters: list[dead_letters.DeadLetter] = []
        if _has_records(spans):
            spans, objects, letters = _write(spec, spans, write)
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


def _delete_unlisted(chain: Chain, spec: LandSpec, claim: lease.Claim) -> None:
    """Delete objects that no manifest lists, because a catalog table reads every object below its prefix.

    Raises what pending() and commit() raise.
    """

    def fence(head: Manifest | None) -> None:
        empty = (span.model_copy(update={"next": span.first}) for span in pending(head, spec))
        commit(chain, spec, head, tuple(empty), ())

    for race in range(MAX_ATTEMPTS):
        head = chain.head()
        pending(head, spec)  # nothing is deleted or appended for a topic that cannot be landed
        lease.check(chain.store, claim)
        try:
            unlisted.delete(chain, spec.ends, head, fence, () if spec.typed is None else spec.typed.partition_by)
        except RaceLostError:
            if race + 1 == MAX_ATTEMPTS:
                raise
            continue
        return


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
    spec: LandSpec, spans: tuple[Span, ...], write: WriteRecords
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
        spec.landing,
        None if spec.landing == "parquet" else spec.registry,
        None if spec.typed is None else spec.typed.compression,
        () if spec.typed is None else spec.typed.partition_by,
        spec.changes,
    )
    starts = {span.partition: read_from(spec, span) for span in spans}
    rows = list(write(writer, {span.partition: (starts[span.partition], span.next) for span in spans}))
    objects = [LandedObject.model_validate_json(text) for kind, text in rows if kind == "object"]
    letters = [dead_letters.DeadLetter.model_validate_json(text) for kind, text in rows if kind == "dead_letter"]
    before = _newest(text for kind, text in rows if kind == "before")
    for span in spans:
        if starts[span.partition] < span.first:
            require_unchanged(spec, span, before.get(span.partition))
    if len(letters) > spec.dead_letter_limit:
        last = letters[-1]
        raise dead_letter_writer.too_many(spec.topic, spec.dead_letter_limit, last.reason, last.partition, last.offset)
    ordered = sorted(objects, key=lambda item: (item.partition, item.first))
    newest = _newest(text for kind, text in rows if kind == "last")
    read = (span.model_copy(update={"last": newest.get(span.partition, span.last)}) for span in spans)
    return tuple(read), tuple(ordered), letters


def read_from(spec: LandSpec, span: Span) -> int:
    """Return the offset to read a partition from: its last landed record, to compare it with the topic's record.

    Returns the span's start, without a comparison, if there are no new records or if that record has expired.
    """
    nothing_new = span.first == span.next
    if nothing_new or span.last is None or span.last.offset < spec.begins.get(span.partition, 0):
        return span.first
    return span.last.offset


def _newest(rows: Iterable[str]) -> dict[int, LastRecord]:
    """Return the newest record that the executors reported for each partition."""
    seen = sorted((SeenRecord.model_validate_json(row) for row in rows), key=lambda each: each.record.offset)
    return {each.partition: each.record for each in seen}


def _read(spark: SparkSession, spec: LandSpec, ranges: Mapping[int, tuple[int, int]]) -> DataFrame:
    """Read the ranges as a bounded batch; a Spark partition has a contiguous range of one topic partition, in order."""
    reader = spark.read.format("kafka").options(**kafka_options.options(spark, spec.kafka))
    return (
        reader.option("kafka.isolation.level", "read_committed")
        .option("assign", json.dumps({spec.topic: list(ranges)}))
        .option("startingOffsets", json.dumps({spec.topic: {str(p): first for p, (first, _) in ranges.items()}}))
        .option("endingOffsets", json.dumps({spec.topic: {str(p): end for p, (_, end) in ranges.items()}}))
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .load()
        .select("partition", "offset", "value", "key", "headers")
    )
