"""Find the offsets of a topic that are not landed yet, and detect records that were lost before they were landed."""

from __future__ import annotations

from collections.abc import Sequence

from cdc_lake.contract.errors import EpochNotLandedError, OffsetsExpiredError, TopicRecreatedError
from cdc_lake.contract.objects.manifest import LastRecord, Manifest, Span
from cdc_lake.jobs.landing.land_spec import LandSpec


def pending(head: Manifest | None, spec: LandSpec) -> tuple[Span, ...]:
    """Return the offsets that are not landed yet, one span for each partition, including empty spans.

    Raises OffsetsExpiredError if records expired before they were landed, TopicRecreatedError if the topic was
    re-created or lost partitions or records at its end, and EpochNotLandedError if the chain belongs to another epoch.
    Records that another run has landed after `spec.ends` do not count as lost.
    """
    epoch = 0 if head is None else head.epoch
    if epoch != spec.epoch:
        raise EpochNotLandedError(
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
    return head is None or has_records(spans)


def has_records(spans: Sequence[Span]) -> bool:
    """Return whether any span contains offsets."""
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
            f"was skipped. Raise the topic's retention or land more often. Then run `cdc-lake resnapshot "
            f"{spec.pipeline}`: it continues from a new snapshot."
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


def start_offset(spec: LandSpec, span: Span) -> int:
    """Return the offset to read a partition from: its last landed record, to compare it with the topic's record.

    Returns the span's start, without a comparison, if there are no new records or if that record has expired.
    """
    nothing_new = span.first == span.next
    if nothing_new or span.last is None or span.last.offset < spec.begins.get(span.partition, 0):
        return span.first
    return span.last.offset
