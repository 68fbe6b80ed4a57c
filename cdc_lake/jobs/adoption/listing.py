"""List the objects of a sink connector that can contain records which are not adopted yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from heapq import nlargest
from math import inf

from cdc_lake.contract.errors import ForeignObjectError
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import LandedObject, Manifest, Span
from cdc_lake.contract.objects.store import ObjectInfo
from cdc_lake.contract.sinks import sink_names
from cdc_lake.contract.sinks.sink_names import Layout, SinkName
from cdc_lake.jobs.adoption.sink import Sink

_MANIFESTS_SEARCHED = 50
_EARLIER_OBJECTS = 50
_NAMED_BY_FIRST: tuple[Layout, ...] = ("confluent", "aiven")


Listed = tuple[SinkName, ObjectInfo]
Adopted = Mapping[int, tuple[SinkName, LandedObject]]


def unadopted_objects(
    chain: Chain, sink: Sink, head: Manifest | None, spans: Sequence[Span]
) -> dict[int, list[Listed]]:
    """Return the objects that can contain records of the spans, by partition, ordered by the offsets in their names.

    Raises ForeignObjectError for an object that the sink did not write, and for a partition that the topic lacks.
    """
    wanted = {span.partition: span for span in spans if span.first < span.next}
    found: dict[int, list[Listed]] = {partition: [] for partition in wanted}
    adopted = _adopted(chain, sink, head, wanted)
    known = {span.partition for span in spans}
    for name, info in _scan(chain, sink, wanted, adopted):
        if name.partition not in known:
            listed = ", ".join(map(str, sorted(known)))
            raise ForeignObjectError(
                f"Cannot adopt object {name.key}: it belongs to partition {name.partition}, and topic {chain.topic} "
                f"has only {'partition' if len(known) == 1 else 'partitions'} {listed}. It comes from another topic of "
                "that name, or the topic was re-created. Nothing was adopted. Move it to another prefix."
            )
        if name.partition in wanted:
            found[name.partition].append((name, info))
    return {
        partition: _needed(sink, sorted(objects, key=_offset_and_key), wanted[partition], adopted.get(partition))
        for partition, objects in found.items()
    }


def _adopted(chain: Chain, sink: Sink, head: Manifest | None, wanted: Mapping[int, Span]) -> Adopted:
    """Return the last adopted object of each partition, for layouts whose names contain the first offset only.

    The end of such an object is not known from its name, and the sink can write it again with more records. Only the
    newest manifests are searched; if it is not found there, more objects are listed than necessary.
    """
    found: dict[int, tuple[SinkName, LandedObject]] = {}
    if sink.layout not in _NAMED_BY_FIRST or head is None:
        return found
    start = sink_names.base_prefix(sink.layout, sink.prefix)
    for number in range(head.number, max(0, head.number - _MANIFESTS_SEARCHED), -1):
        manifest = head if number == head.number else chain.read(number)
        for item in manifest.objects:
            if item.partition not in wanted or item.sink is None or not item.key.startswith(start):
                continue
            name = sink_names.parse(sink.layout, sink.prefix, item.key)
            before = found.get(item.partition)
            if before is None or (before[0].offset, before[1].last) < (name.offset, item.last):
                found[item.partition] = name, item
        if found.keys() == wanted.keys():
            break
    return found


def _scan(chain: Chain, sink: Sink, wanted: Mapping[int, Span], adopted: Adopted) -> Iterator[Listed]:
    layout, prefix, topic = sink.layout, sink.prefix, chain.topic
    folders = {sink_names.topic_prefix(layout, prefix, topic): ""} if wanted and not sink.ordered else {}
    for partition, span in wanted.items() if sink.ordered else ():
        # A lenses object is named after its last offset, so all objects with records of the span sort at or after it.
        since = span.first if layout == "lenses" else adopted[partition][0].offset if partition in adopted else 0
        folder = sink_names.partition_prefix(layout, prefix, topic, partition)
        folders[folder] = sink_names.key_before(layout, prefix, topic, partition, since)
    for folder, after in folders.items():
        for info in chain.store.scan(folder, after=after):
            name = sink_names.parse(layout, prefix, info.key)
            if name.topic == topic:
                yield name, info


def earlier_objects(chain: Chain, sink: Sink, span: Span) -> list[Listed]:
    """Return the most recently written objects that start before the span, for layouts named by the first offset only.

    Such an object can contain records of the span although a later object was adopted: a sink connector that restarts
    writes an object again, with more records. Lists all objects of the partition.
    """
    if sink.layout not in _NAMED_BY_FIRST:
        return []
    folder = sink_names.partition_prefix(sink.layout, sink.prefix, chain.topic, span.partition)
    listed = ((sink_names.parse(sink.layout, sink.prefix, info.key), info) for info in chain.store.scan(folder))
    before = (
        each
        for each in listed
        if (each[0].topic, each[0].partition) == (chain.topic, span.partition) and each[0].offset < span.first
    )
    return sorted(nlargest(_EARLIER_OBJECTS, before, key=lambda each: each[1].modified), key=_offset_and_key)


def _needed(
    sink: Sink, objects: list[Listed], span: Span, adopted: tuple[SinkName, LandedObject] | None
) -> list[Listed]:
    """Return the objects that can contain records of the span, by their names."""
    if sink.layout.startswith("lenses"):
        # Without an envelope, offsets are counted back from the last line: an object that ends after the span has to
        # wait for the next run.
        return [each for each in objects if span.first <= each[0].offset < (inf if sink.envelope else span.next)]
    begun = [number for number, (name, _) in enumerate(objects) if name.offset <= span.first]
    later = [each for each in objects[max(begun, default=0) :] if each[0].offset < span.next]
    if later and adopted is not None and _is_whole(later[0], adopted[1]):
        return later[1:]
    return later


def _is_whole(listed: Listed, item: LandedObject) -> bool:
    """Return whether an object was adopted up to its last line and was not rewritten since."""
    name, info = listed
    whole = item.sink is not None and item.sink.skip + item.records == item.sink.lines
    return whole and (name.key, info.etag) == (item.key, item.etag)


def _offset_and_key(listed: Listed) -> tuple[int, str]:
    return listed[0].offset, listed[0].key
