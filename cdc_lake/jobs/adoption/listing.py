"""Which objects of a sink connector can hold records that are not adopted yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf

from cdc_lake.contract.errors import ContractError, ForeignObjectError
from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import LandedObject, Manifest, Span
from cdc_lake.contract.objects.store import ObjectInfo
from cdc_lake.contract.sinks import sink_names
from cdc_lake.contract.sinks.sink_lines import Framing
from cdc_lake.contract.sinks.sink_names import Layout, SinkName

_MANIFESTS_SEARCHED = 50
_ENVELOPES: Mapping[Layout, Framing] = {
    "lenses": "lenses_envelope",
    "lenses_by_field": "lenses_envelope",
    "aiven": "aiven_envelope",
}


@dataclass(frozen=True)
class Sink:
    """Where a sink connector writes one topic, and how.

    Raises ContractError for an envelope that the vendor has none of, and for a layout by fields without one.
    """

    layout: Layout
    prefix: str
    envelope: bool = False

    def __post_init__(self) -> None:
        if self.envelope and self.layout not in _ENVELOPES:
            raise ContractError(f"a {self.layout} sink writes no envelope with offsets; leave envelope out")
        if self.layout == "lenses_by_field" and not self.envelope:
            raise ContractError(
                "objects of a sink that partitions by fields hold offsets that lie among those of other "
                "objects, and their names tell the last one only. Write them with an envelope (PROPERTIES "
                "('store.envelope'=true) in the KCQL) and say envelope: true, or take the layout lenses, unpartitioned"
            )

    @property
    def framing(self) -> Framing:
        """How a line holds a record."""
        return _ENVELOPES[self.layout] if self.envelope else "value"

    @property
    def ordered(self) -> bool:
        """Whether one object of a partition ends before the next one begins, but for what is told again."""
        return self.layout != "lenses_by_field"


Listed = tuple[SinkName, ObjectInfo]
Adopted = Mapping[int, tuple[SinkName, LandedObject]]


def unadopted(chain: Chain, sink: Sink, head: Manifest | None, spans: Sequence[Span]) -> dict[int, list[Listed]]:
    """Objects that can hold records of the spans, by partition, in the order of their names' offsets.

    Raises ForeignObjectError for what no such sink wrote, and for a partition that the topic has not.
    """
    wanted = {span.partition: span for span in spans if span.first < span.next}
    found: dict[int, list[Listed]] = {partition: [] for partition in wanted}
    adopted = _adopted(chain, sink, head, wanted)
    known = {span.partition for span in spans}
    for name, info in _scan(chain, sink, wanted, adopted):
        if name.partition not in known:
            raise ForeignObjectError(
                f"object {name.key} is of partition {name.partition}, and topic {chain.topic} has {sorted(known)}: it "
                "is of another topic of that name, or the topic was made again. Nothing was adopted: move it away"
            )
        if name.partition in wanted:
            found[name.partition].append((name, info))
    return {
        partition: _needed(sink, sorted(objects, key=_place), wanted[partition], adopted.get(partition))
        for partition, objects in found.items()
    }


def _adopted(chain: Chain, sink: Sink, head: Manifest | None, wanted: Mapping[int, Span]) -> Adopted:
    """The object that was adopted last of each partition, where names tell the first offset only.

    Such a one reaches as far as it likes, and can be written anew with more. It is looked for in the newest manifests;
    without it, more is listed than has to be.
    """
    found: dict[int, tuple[SinkName, LandedObject]] = {}
    if sink.layout not in {"confluent", "aiven"} or head is None:
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
        # Named by its last record, an object with records of the span sorts from the span's start on.
        since = span.first if layout == "lenses" else adopted[partition][0].offset if partition in adopted else 0
        folder = sink_names.partition_prefix(layout, prefix, topic, partition)
        folders[folder] = sink_names.key_before(layout, prefix, topic, partition, since)
    for folder, after in folders.items():
        for info in chain.store.scan(folder, after=after):
            name = sink_names.parse(layout, prefix, info.key)
            if name.topic == topic:
                yield name, info


def _needed(
    sink: Sink, objects: list[Listed], span: Span, adopted: tuple[SinkName, LandedObject] | None
) -> list[Listed]:
    """Those whose names leave it open that they hold records of the span."""
    if sink.layout.startswith("lenses"):
        # One that ends after the span can't be counted back from its end; the next run's span goes on past it.
        return [each for each in objects if span.first <= each[0].offset < (inf if sink.envelope else span.next)]
    begun = [number for number, (name, _) in enumerate(objects) if name.offset <= span.first]
    later = [each for each in objects[max(begun, default=0) :] if each[0].offset < span.next]
    if later and adopted is not None and _is_whole(later[0], adopted[1]):
        return later[1:]
    return later


def _is_whole(listed: Listed, item: LandedObject) -> bool:
    """Whether an object is adopted to its last line, and was not written again since."""
    name, info = listed
    whole = item.sink is not None and item.sink.skip + item.records == item.sink.lines
    return whole and (name.key, info.etag) == (item.key, item.etag)


def _place(listed: Listed) -> tuple[int, str]:
    return listed[0].offset, listed[0].key
