"""Assign an offset to each line of a sink connector's objects, and find how far the offsets continue without a gap.

The offset is in the line's envelope; without an envelope it is that of the topic's record with the same value.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cdc_lake.contract.errors import ObjectConflictError, ObjectDamagedError
from cdc_lake.contract.objects import json_lines
from cdc_lake.contract.objects.manifest import LandedObject, SinkPart, Span
from cdc_lake.contract.objects.store import ObjectInfo
from cdc_lake.contract.sinks.sink_lines import Framing, Line
from cdc_lake.contract.sinks.sink_names import SinkName
from cdc_lake.contract.source.topic_records import CommittedRecords
from cdc_lake.jobs.landing.raw_writer import consecutive_runs


@dataclass(frozen=True)
class PlacedObject:
    """An object with the offsets of its lines from line `skip` on; lines after these are for a later run."""

    name: SinkName
    info: ObjectInfo
    framing: Framing
    lines: int
    skip: int
    offsets: Sequence[int]
    values: Sequence[bytes]

    def part(self, first_line: int, count: int) -> LandedObject:
        """Return the manifest's entry for `count` placed lines."""
        offsets = self.offsets[first_line : first_line + count]
        values = list(self.values[first_line : first_line + count])
        return LandedObject(
            key=self.name.key,
            partition=self.name.partition,
            first=offsets[0],
            last=offsets[-1],
            records=count,
            bytes=self.info.size,
            sha256=hashlib.sha256(json_lines.join_lines(values)).hexdigest(),
            etag=self.info.etag,
            runs=tuple(consecutive_runs(offsets)),
            sink=SinkPart(framing=self.framing, gzip=self.name.gzip, skip=self.skip + first_line, lines=self.lines),
        )


@dataclass(frozen=True)
class Gap:
    """Offsets without an object; `expired` if the topic no longer has their records, if there were any."""

    message: str
    expired: bool


@dataclass(frozen=True)
class Adoptable:
    """The records that follow a span's start without a gap, and the gap that ends them."""

    objects: tuple[LandedObject, ...]
    next: int
    gap: Gap | None


def place_lines(
    name: SinkName, info: ObjectInfo, framing: Framing, lines: Sequence[Line], span: Span, committed: CommittedRecords
) -> PlacedObject | None:
    """Assign offsets to an object's lines; return None if the topic no longer has the records, or not yet.

    Raises ObjectDamagedError for envelopes whose offsets do not increase, ObjectConflictError for a name that does not
    match the topic.
    """
    values = [value for _, value in lines]
    told = [offset for offset, _ in lines if offset is not None]
    if framing != "value":
        if any(after <= before for before, after in pairwise(told)):
            raise ObjectDamagedError(
                f"the offsets in object {name.key} do not rise, which no sink connector writes; nothing was adopted: "
                "restore it, or move it away"
            )
        return PlacedObject(name, info, framing, len(values), 0, told, values)
    if name.is_last_offset:
        there = committed.between(span.first, name.offset + 1)
        if there is None:
            return None
        _require_named_offset(name, there[-1:], name.offset)
        skip = max(0, len(values) - len(there))  # earlier lines were adopted from another object
        offsets = there[len(there) - (len(values) - skip) :]
        return _require_same_records(
            PlacedObject(name, info, framing, len(values), skip, offsets, values[skip:]), committed
        )
    there = committed.between(name.offset, span.next)
    if there is None:
        return None
    _require_named_offset(name, there[:1], name.offset)
    offsets = there[: len(values)]
    return _require_same_records(
        PlacedObject(name, info, framing, len(values), 0, offsets, values[: len(offsets)]), committed
    )


def _require_same_records(placed: PlacedObject, committed: CommittedRecords) -> PlacedObject:
    """Return `placed`, if each line has the value of the topic's record at the line's offset."""
    for number, (offset, value) in enumerate(zip(placed.offsets, placed.values, strict=True), placed.skip + 1):
        if not committed.has(offset, value):
            raise ObjectConflictError(
                f"line {number} of object {placed.name.key} is not the record that topic {placed.name.topic}, "
                f"partition {placed.name.partition}, has at offset {offset}: the object is of another topic of that "
                "name, or its sink leaves records out (errors.tolerance, a filter), changes them, or reads uncommitted "
                "ones (consumer.override.isolation.level). Nothing was adopted: correct that, and move the object away"
            )
    return placed


def _require_named_offset(name: SinkName, found: Sequence[int], offset: int) -> None:
    if list(found) != [offset]:
        raise ObjectConflictError(
            f"object {name.key} is named by offset {offset}, where topic {name.topic}, partition {name.partition}, has "
            "no committed record: it is of another topic of that name, or its sink reads uncommitted records "
            "(consumer.override.isolation.level). Nothing was adopted: correct that, and move the object away"
        )


def adoptable(topic: str, placed: Sequence[PlacedObject], span: Span, committed: CommittedRecords) -> Adoptable:
    """Return the records from the span's start up to the first missing one.

    Lines with the same offset are one record. Raises ObjectConflictError if their values differ.
    """
    offers = _lines_by_offset(placed, span)
    taken: list[tuple[int, int]] = []
    at = span.first
    for offset in sorted(offers):
        missing = committed.between(at, offset) if offset > at else ()
        if missing is None or missing:
            name = placed[offers[offset][0]].name
            at = missing[0] if missing else at
            return Adoptable(_entries(placed, taken), at, _gap(topic, span, f"{at} to {offset - 1}", missing, name))
        taken.append(offers[offset])
        at = offset + 1
    rest = committed.between(at, span.next)
    if rest is None:
        return Adoptable(_entries(placed, taken), at, _gap(topic, span, f"{at} to {span.next - 1}", None))
    # Later records of the topic are not written yet; transaction markers are not records.
    return Adoptable(_entries(placed, taken), rest[0] if rest else span.next, None)


def _lines_by_offset(placed: Sequence[PlacedObject], span: Span) -> dict[int, tuple[int, int]]:
    """Return for each offset the first object that has it, and the index of its placed line."""
    offers: dict[int, tuple[int, int]] = {}
    for number, each in enumerate(placed):
        for line, offset in enumerate(each.offsets):
            if not span.first <= offset < span.next:
                continue
            before, there = offers.setdefault(offset, (number, line))
            if placed[before].values[there] != each.values[line]:
                raise ObjectConflictError(
                    f"objects {placed[before].name.key} and {each.name.key} have different records at offset {offset} "
                    f"of partition {span.partition}: one is of another topic of that name, or the connector's "
                    "converter was changed in between. Nothing was adopted: move one of them away"
                )
    return offers


def _entries(placed: Sequence[PlacedObject], taken: Iterable[tuple[int, int]]) -> tuple[LandedObject, ...]:
    """Return an entry for each run of consecutive lines of one object."""
    lines: dict[int, list[int]] = {}
    for number, line in taken:
        lines.setdefault(number, []).append(line)
    entries = [placed[number].part(*run) for number, those in lines.items() for run in _rows(those)]
    return tuple(sorted(entries, key=lambda item: item.first))


def _rows(lines: Sequence[int]) -> Iterator[tuple[int, int]]:
    return consecutive_runs(sorted(lines))


def _gap(topic: str, span: Span, offsets: str, missing: Sequence[int] | None, later: SinkName | None = None) -> Gap:
    where = f"topic {topic}, partition {span.partition}"
    though = f", though {later.key} holds later ones" if later else ""
    if missing is None:
        return Gap(
            f"{where}: no object holds the records of offsets {offsets}{though}, and the topic has not got all of "
            "these any more, so that nobody can tell records from transaction markers",
            expired=True,
        )
    message = f"{where}: {len(missing)} records of offsets {missing[0]} to {missing[-1]} are in no object{though}"
    return Gap(message, expired=False)
