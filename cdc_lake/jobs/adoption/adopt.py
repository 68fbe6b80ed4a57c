"""adopt: append the objects of a sink connector to the manifest chain, as landing appends the objects that it writes.

Later stages treat both alike (docs/decisions/0024-sink-connectors-objects.md). Records of a partition are adopted in
order and without gaps: a record that is not written or not visible yet holds back all later ones. The job needs no
Spark: it reads each object once, to count and fingerprint its lines.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace

from cdc_lake.contract.errors import ManifestGapError, ObjectDamagedError, OffsetsExpiredError, RaceLostError
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import LandedObject, LastRecord, Manifest, Span
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.sinks import sink_lines
from cdc_lake.contract.source.topic_records import CommittedRecords, TopicReader, fingerprint_text
from cdc_lake.jobs.adoption import adoption_watermark
from cdc_lake.jobs.adoption.line_offsets import Adoptable, Gap, ObjectLines, adoptable, assign_offsets
from cdc_lake.jobs.adoption.listing import Listed, earlier_objects, unadopted_objects
from cdc_lake.jobs.adoption.recreated_topic import require_unused_prefix
from cdc_lake.jobs.adoption.sink import Sink
from cdc_lake.jobs.landing import land, pending_offsets
from cdc_lake.jobs.landing.land import LandReport
from cdc_lake.jobs.landing.land_spec import LandSpec

_READERS = 8
OBJECTS_PER_RUN = 2000
"""The maximum per partition. A run keeps the objects in memory, so a backlog is adopted in several manifests."""


@dataclass(frozen=True)
class AdoptSpec:
    """The input of one run: `landing` has the topic and its ends, as for a landing run, `sink` the objects to adopt."""

    landing: LandSpec
    sink: Sink
    objects_per_run: int = OBJECTS_PER_RUN


@dataclass(frozen=True)
class AdoptReport(LandReport):
    """The result of one run; `gaps` describes what is missing in each partition with a gap."""

    gaps: tuple[str, ...] = ()


def pending(head: Manifest | None, spec: AdoptSpec) -> tuple[Span, ...]:
    """Return the offsets that are not adopted yet.

    Raises what pending_offsets.pending() raises, except for expired offsets: an object may have records that expired in
    the topic.
    """
    return pending_offsets.pending(head, replace(spec.landing, begins={}))


def new_objects(store: ObjectStore, spec: AdoptSpec) -> list[str]:
    """Return key and ETag of the objects that can contain records to adopt, for the sensors.

    Raises what pending() raises, and ForeignObjectError.
    """
    chain = _chain(store, spec)
    head = chain.head()
    listed = unadopted_objects(chain, spec.sink, head, pending(head, spec))
    return [f"{name.key} {info.etag}" for objects in listed.values() for name, info in objects]


def run(spec: AdoptSpec, topic: TopicReader) -> AdoptReport:
    """Adopt the records that follow the end of the chain; an empty chain gets a first manifest in any case.

    Raises what pending(), pending_offsets.require_unchanged(), assign_offsets(), adoptable() and Chain.append() raise,
    ForeignObjectError, LeaseLostError, ManifestGapError if a gap leaves nothing to adopt, and OffsetsExpiredError
    for a gap that can no longer be filled, after the rest is committed. Starts over if another run appends first.
    """
    started = time.monotonic()
    chain = _chain(spec.landing.location.store(), spec)
    for race in range(land.MAX_ATTEMPTS):
        head = chain.head()
        spans = pending(head, spec)
        require_unused_prefix(chain, spec.sink, head)
        _require_unchanged(spec, topic, spans)
        found = _adoptable_by_partition(chain, spec, topic, head, spans)
        gaps = [each.gap for each in found.values() if each.gap is not None]
        messages = tuple(gap.message for gap in gaps)
        reached = tuple(_reached(span, found.get(span.partition)) for span in spans)
        watermark = adoption_watermark.reached_watermark(chain.store, spec.landing, head, reached)
        if all(span.first == span.next for span in reached):
            _require_no_gap(spec, gaps)
        if not pending_offsets.has_work(head, reached):
            return AdoptReport(None, 0, 0, 0, 0, time.monotonic() - started, messages)
        objects = tuple(item for each in found.values() for item in each.objects)
        compared = tuple(_with_last(topic, span, objects) for span in reached)
        try:
            manifest = land.commit(chain, replace(spec.landing, watermark=watermark), head, compared, objects)
        except RaceLostError:
            if race + 1 == land.MAX_ATTEMPTS:
                raise
            continue
        _require_none_expired(spec, gaps, f"manifest {manifest.number} contains the records that could be adopted")
        seconds = time.monotonic() - started
        return AdoptReport(manifest.number, manifest.records, len(objects), manifest.size, 0, seconds, messages)
    raise AssertionError("unreachable: the last race raises")


def _chain(store: ObjectStore, spec: AdoptSpec) -> Chain:
    return Chain(store, spec.landing.pipeline, spec.landing.topic, spec.landing.chain)


def _require_unchanged(spec: AdoptSpec, topic: TopicReader, spans: Sequence[Span]) -> None:
    """Raise if the topic's record at the last adopted offset has changed; an expired record is not checked."""
    for span in spans:
        if span.last is not None and span.first < span.next:
            found = topic.records(span.partition, span.last.offset, span.first)
            if found is not None:
                pending_offsets.require_unchanged(spec.landing, span, _newest(found))


def _with_last(topic: TopicReader, span: Span, objects: Sequence[LandedObject]) -> Span:
    """Return the span with its last record as it is in the topic: a sink connector may format the value differently."""
    newest = max((item.last for item in objects if item.partition == span.partition), default=None)
    if newest is None:
        return span
    found = topic.records(span.partition, newest, newest + 1)
    return span.model_copy(update={"last": None if found is None else _newest(found)})


def _newest(records: Iterable[tuple[int, int]]) -> LastRecord | None:
    newest = max(records, default=None)
    return None if newest is None else LastRecord(offset=newest[0], fingerprint=fingerprint_text(newest[1]))


def _reached(span: Span, found: Adoptable | None) -> Span:
    return span.model_copy(update={"next": span.first if found is None else found.next})


def _adoptable_by_partition(
    chain: Chain, spec: AdoptSpec, topic: TopicReader, head: Manifest | None, spans: Sequence[Span]
) -> dict[int, Adoptable]:
    """Return the adoptable records by partition; partitions without new records are left out."""
    listed = unadopted_objects(chain, spec.sink, head, spans)
    found = {}
    for span in spans:
        if span.partition not in listed:
            continue
        objects = listed[span.partition]
        if spec.sink.ordered:
            objects = objects[: spec.objects_per_run]
        committed = CommittedRecords(topic, span.partition, span.next)
        lines = _object_lines(chain.store, spec.sink, objects, span, committed)
        result = adoptable(chain.topic, lines, span, committed)
        stopped = result.gap is not None or result.next == span.first
        if stopped and (before := earlier_objects(chain, spec.sink, span)):
            lines = [*_object_lines(chain.store, spec.sink, before, span, committed), *lines]
            result = adoptable(chain.topic, lines, span, committed)
        found[span.partition] = result
    return found


def _object_lines(
    store: ObjectStore, sink: Sink, objects: Sequence[Listed], span: Span, committed: CommittedRecords
) -> list[ObjectLines]:
    """Return the objects whose lines have known offsets; the records of the other objects count as a gap."""

    def read_lines(listed: Listed) -> list[sink_lines.Line]:
        name, _ = listed
        stored = store.get(name.key)
        if stored is None:
            raise ObjectDamagedError(
                f"Cannot adopt object {name.key}: it was deleted after it was listed. Nothing was adopted. Restore it, "
                "and check the bucket's lifecycle rules: objects of the sink connector must not be deleted before they "
                "are adopted."
            )
        return sink_lines.lines(stored.body, name.key, sink.framing, name.gzip)

    with ThreadPoolExecutor(_READERS) as readers:
        read = list(readers.map(read_lines, objects))
    found = (
        assign_offsets(name, info, sink.framing, each, span, committed)
        for (name, info), each in zip(objects, read, strict=True)
    )
    return [each for each in found if each is not None]


def _require_no_gap(spec: AdoptSpec, gaps: Sequence[Gap]) -> None:
    """Raise if a gap left nothing to adopt, except in a layout by fields: its missing records may still be buffered."""
    _require_none_expired(spec, gaps, "nothing was adopted")
    for gap in gaps:
        if spec.sink.ordered:
            raise ManifestGapError(
                f"Cannot adopt: {gap.message}. Nothing was adopted. If the connector's log shows that it will not "
                "write them, remove landing.sink from the pipeline's YAML and materialise raw once: landing then reads "
                "them from Kafka."
            )


def _require_none_expired(spec: AdoptSpec, gaps: Sequence[Gap], so_far: str) -> None:
    """Raise for a gap whose records have expired in the topic, because it cannot be filled any more."""
    for gap in gaps:
        if gap.expired:
            raise OffsetsExpiredError(
                f"Cannot adopt: {gap.message}; {so_far}. Raise the topic's retention, or find out what stopped the "
                f"adoption. Then run `cdc-lake resnapshot {spec.landing.pipeline}`: it continues from a new snapshot."
            )
