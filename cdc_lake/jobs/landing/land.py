"""land: write a bounded range of a Kafka topic to raw objects, and commit it with one manifest.

The caller fixes the end of the range; the start is the end of the manifest chain. An interrupted run leaves objects
that no manifest lists; the next run writes what it needs again (docs/decisions/0004-landing-by-offset.md).
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from pyspark.sql import DataFrame, SparkSession

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import RaceLostError
from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import LandedObject, LastRecord, Manifest, Span
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.table import lease
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.jobs.executor_errors import contract_errors
from cdc_lake.jobs.landing import (
    dead_letter_writer,
    kafka_options,
    pending_offsets,
    topic_reader,
    typed_rows,
    unlisted_objects,
)
from cdc_lake.jobs.landing.land_spec import LandSpec
from cdc_lake.jobs.landing.raw_writer import WRITTEN_SCHEMA, RawWriter, SeenRecord
from cdc_lake.jobs.landing.topic_reader import PartWriter

MAX_ATTEMPTS = 5
_RECORDS_PER_TASK = 25_000
"""The fewest records for which another task is worth its start. Long ranges of one partition are divided."""


@dataclass(frozen=True)
class LandReport:
    """The result of one run; `manifest` is None if there was nothing to land."""

    manifest: int | None
    records: int
    objects: int
    bytes: int
    dead_letters: int
    seconds: float


def watermark(head: Manifest | None, spec: LandSpec) -> Watermark | None:
    """Return the next manifest's watermark: that of the spec, or else that of the newest manifest."""
    return spec.watermark if spec.watermark is not None or head is None else head.watermark


WriteRecords = Callable[[RawWriter, Mapping[int, tuple[int, int]]], Iterable[tuple[str, str]]]
"""Reads the committed records of a topic in ranges of offsets (first and next, by partition), passes them to the writer
in order, one partition after another, and returns its rows."""


@contract_errors()
def run(spark: SparkSession, spec: LandSpec) -> LandReport:
    """Land the records between the end of the chain and `spec.ends`, with Spark.

    Raises what land() raises, and TopicUnreadableError.
    """

    def write(writer: RawWriter, ranges: Mapping[int, tuple[int, int]]) -> list[tuple[str, str]]:
        records = sum(end - first for first, end in ranges.values())
        tasks = max(min(spark.sparkContext.defaultParallelism, records // _RECORDS_PER_TASK), len(ranges))
        if spec.typed is None and spec.client is not None:
            parts = topic_reader.divided(ranges, tasks)
            numbers = spark.range(0, len(parts), 1, len(parts))
            written = numbers.mapInArrow(PartWriter(spec.client, spec.topic, parts, writer), WRITTEN_SCHEMA)
        else:
            written = _records(spark, spec, ranges, tasks).mapInArrow(writer, WRITTEN_SCHEMA)
        return [(row.kind, row.json) for row in written.collect()]

    return land(spec, write)


def land(spec: LandSpec, write: WriteRecords) -> LandReport:
    """Land the records between the end of the chain and `spec.ends`; an empty chain gets a manifest in any case.

    Raises what pending_offsets.pending(), require_unchanged() and Chain.append() raise, TooManyDeadLettersError and
    LeaseLostError. Starts over from the new end of the chain if another run appends a manifest first.
    """
    started = time.monotonic()
    store = spec.location.store()
    chain = Chain(store, spec.pipeline, spec.topic, spec.chain)
    if spec.typed is not None and spec.claim is not None:
        _delete_unlisted(chain, spec, spec.claim)
    for race in range(MAX_ATTEMPTS):
        head = chain.head()
        spans = pending_offsets.pending(head, spec)
        if not pending_offsets.has_work(head, spans):
            return LandReport(None, 0, 0, 0, 0, time.monotonic() - started)
        objects: tuple[LandedObject, ...] = ()
        letters: list[dead_letters.DeadLetter] = []
        if pending_offsets.has_records(spans):
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

    Raises what pending_offsets.pending() and commit() raise.
    """

    def fence(head: Manifest | None) -> None:
        empty = (span.model_copy(update={"next": span.first}) for span in pending_offsets.pending(head, spec))
        # Without the batch's watermark, because none of its records is landed.
        commit(chain, replace(spec, watermark=None), head, tuple(empty), ())

    for race in range(MAX_ATTEMPTS):
        head = chain.head()
        pending_offsets.pending(head, spec)  # nothing is deleted or appended for a topic that cannot be landed
        lease.check(chain.store, claim)
        try:
            columns = () if spec.typed is None else spec.typed.partition_by
            unlisted_objects.delete(chain, spec.ends, head, fence, columns)
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
        location=spec.location,
        pipeline=spec.pipeline,
        topic=spec.topic,
        attempt=spec.attempt,
        records_per_object=spec.records_per_object,
        bytes_per_object=spec.bytes_per_object,
        epoch=spec.epoch,
        record_bytes=spec.record_bytes,
        dead_letter_limit=spec.dead_letter_limit,
        chain=spec.chain,
        first_offsets={span.partition: span.first for span in spans},
        landing=spec.landing,
        registry=None if spec.landing == "parquet" else spec.registry,
        compression=None if spec.typed is None else spec.typed.compression,
        partition_by=() if spec.typed is None else spec.typed.partition_by,
        transforms=spec.transforms,
    )
    starts = {span.partition: pending_offsets.start_offset(spec, span) for span in spans}
    rows = list(write(writer, {span.partition: (starts[span.partition], span.next) for span in spans}))
    objects = [LandedObject.model_validate_json(text) for kind, text in rows if kind == "object"]
    letters = [dead_letters.DeadLetter.model_validate_json(text) for kind, text in rows if kind == "dead_letter"]
    before = _newest(text for kind, text in rows if kind == "before")
    for span in spans:
        if starts[span.partition] < span.first:
            pending_offsets.require_unchanged(spec, span, before.get(span.partition))
    if len(letters) > spec.dead_letter_limit:
        last = letters[-1]
        raise dead_letter_writer.too_many(spec.topic, spec.dead_letter_limit, last.reason, last.partition, last.offset)
    ordered = sorted(objects, key=lambda item: (item.partition, item.first))
    newest = _newest(text for kind, text in rows if kind == "last")
    read = (span.model_copy(update={"last": newest.get(span.partition, span.last)}) for span in spans)
    return tuple(read), tuple(ordered), letters


def _newest(rows: Iterable[str]) -> dict[int, LastRecord]:
    """Return the newest record that the executors reported for each partition."""
    seen = sorted((SeenRecord.model_validate_json(row) for row in rows), key=lambda each: each.record.offset)
    return {each.partition: each.record for each in seen}


def _records(spark: SparkSession, spec: LandSpec, ranges: Mapping[int, tuple[int, int]], tasks: int) -> DataFrame:
    """Read the ranges with Spark's Kafka source, and decode the records if the objects need that.

    A Spark partition has a contiguous range of one topic partition, in order.
    """
    reader = spark.read.format("kafka").options(**kafka_options.options(spark, spec.kafka))
    records = (
        reader.option("kafka.isolation.level", "read_committed")
        .option("assign", json.dumps({spec.topic: list(ranges)}))
        .option("startingOffsets", json.dumps({spec.topic: {str(p): first for p, (first, _) in ranges.items()}}))
        .option("endingOffsets", json.dumps({spec.topic: {str(p): end for p, (_, end) in ranges.items()}}))
        .option("minPartitions", tasks)
        .option("failOnDataLoss", "true")
        .option("includeHeaders", "true")
        .load()
        .select("partition", "offset", "value", "key", "headers")
    )
    if spec.typed is None:
        return records
    versions = captured_schema.require_versions(spec.location.store(), spec.pipeline, spec.typed.source_table)
    return typed_rows.with_typed_rows(
        records, versions, spec.typed, spec.epoch, spec.record_bytes, spec.registry, spec.transforms
    )
