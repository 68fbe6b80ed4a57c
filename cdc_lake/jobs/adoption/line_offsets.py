"""Which offset each line of a sink connector's objects has, and how far they follow one another without a gap.

An offset stands in the line's envelope, or is that of a record which the topic says is there, with the line's value.
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
    """An object with the offsets of its lines from line `skip` on; it can have further lines, which are for later."""

    name: SinkName
    info: ObjectInfo
    framing: Framing
    lines: int
    skip: int
    offsets: Sequence[int]
    values: Sequence[bytes]

    def part(self, first_line: int, count: int) -> LandedObject:
        """What a manifest says of `count` placed lines."""
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
    """Records that are in no object; `expired` where the topic has not got them any more, if they were any."""

    message: str
    expired: bool


@dataclass(frozen=True)
class Adoptable:
    """What follows on a span's start without a gap, and the gap that ends it."""

    objects: tuple[LandedObject, ...]
    next: int
    gap: Gap | None


def place_lines(
    name: SinkName, info: ObjectInfo, framing: Framing, lines: Sequence[Line], span: Span, committed: CommittedRecords
) -> PlacedObject | None:
    """Give an object's lines their offsets; None where the topic can't tell them any more, or not yet.

    Raises ObjectDamagedError for envelopes whose offsets do not rise, ObjectConflictError for a name that the topic
    contradicts.
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
        skip = max(0, len(values) - len(there))  # those before were adopted from another object
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
    """The same, once each line is seen to be the topic's record at the offset that it was given by counting."""
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
    """The records from the span's start on up to the first one that is missing.

    The same offset twice is one record. Raises ObjectConflictError where two objects have different ones there.
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
    # What the topic has after that is not written yet; markers are no records.
    return Adoptable(_entries(placed, taken), rest[0] if rest else span.next, None)


def _lines_by_offset(placed: Sequence[PlacedObject], span: Span) -> dict[int, tuple[int, int]]:
    """By offset, the first object that has it, and which of its placed lines it is."""
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
    """An entry for each unbroken row of lines of one object."""
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
