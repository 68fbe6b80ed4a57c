"""Assign an offset to each line of a sink connector's objects, and find the first gap in the offsets.

The line's envelope contains the offset. Without an envelope, the object's name contains its first or last offset; the
other offsets are counted from there, and each line must equal the topic's record at its offset.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from cdc_lake.contract.errors import ObjectConflictError, ObjectDamagedError
from cdc_lake.contract.objects import raw_objects
from cdc_lake.contract.objects.manifest import LandedObject, SinkPart, Span
from cdc_lake.contract.objects.store import ObjectInfo
from cdc_lake.contract.sinks.sink_lines import Framing, Line
from cdc_lake.contract.sinks.sink_names import SinkName
from cdc_lake.contract.source.topic_records import CommittedRecords
from cdc_lake.jobs.landing.raw_writer import consecutive_runs


@dataclass(frozen=True)
class ObjectLines:
    """The lines of an object from line `skip` on, with their offsets; later lines are left to a later run."""

    name: SinkName
    info: ObjectInfo
    framing: Framing
    lines: int
    skip: int
    offsets: Sequence[int]
    values: Sequence[bytes]

    def part(self, first_line: int, count: int) -> LandedObject:
        """Return the manifest's entry for `count` of these lines."""
        offsets = self.offsets[first_line : first_line + count]
        values = list(self.values[first_line : first_line + count])
        return LandedObject(
            key=self.name.key,
            partition=self.name.partition,
            first=offsets[0],
            last=offsets[-1],
            records=count,
            bytes=self.info.size,
            sha256=hashlib.sha256(raw_objects.join_lines(values)).hexdigest(),
            etag=self.info.etag,
            runs=tuple(consecutive_runs(offsets)),
            sink=SinkPart(framing=self.framing, gzip=self.name.gzip, skip=self.skip + first_line, lines=self.lines),
        )


@dataclass(frozen=True)
class Gap:
    """Offsets that no object contains; `expired` is true if some of them have expired in the topic."""

    message: str
    expired: bool


@dataclass(frozen=True)
class Adoptable:
    """The records that follow a span's start without a gap, the offset after them, and the gap there, if any."""

    objects: tuple[LandedObject, ...]
    next: int
    gap: Gap | None


def assign_offsets(
    name: SinkName, info: ObjectInfo, framing: Framing, lines: Sequence[Line], span: Span, committed: CommittedRecords
) -> ObjectLines | None:
    """Assign offsets to an object's lines; return None if some of the records have expired in the topic.

    Raises ObjectDamagedError for envelopes whose offsets do not increase, ObjectConflictError for a name that does not
    match the topic.
    """
    values = [value for _, value in lines]
    enveloped = [offset for offset, _ in lines if offset is not None]
    if framing != "value":
        if any(after <= before for before, after in pairwise(enveloped)):
            raise ObjectDamagedError(
                f"Cannot adopt object {name.key}: its offsets do not increase, so it is damaged. Nothing was adopted. "
                "Restore it, or move it to another prefix."
            )
        return ObjectLines(name, info, framing, len(values), 0, enveloped, values)
    if name.is_last_offset:
        in_topic = committed.between(span.first, name.offset + 1)
        if in_topic is None:
            return None
        _require_named_offset(name, in_topic[-1:], name.offset)
        skip = max(0, len(values) - len(in_topic))  # earlier lines were adopted from another object
        offsets = in_topic[len(in_topic) - (len(values) - skip) :]
        found = ObjectLines(name, info, framing, len(values), skip, offsets, values[skip:])
        return _require_same_records(found, committed)
    in_topic = committed.between(name.offset, span.next)
    if in_topic is None:
        return None
    _require_named_offset(name, in_topic[:1], name.offset)
    offsets = in_topic[: len(values)]
    found = ObjectLines(name, info, framing, len(values), 0, offsets, values[: len(offsets)])
    return _require_same_records(found, committed)


def _require_same_records(found: ObjectLines, committed: CommittedRecords) -> ObjectLines:
    """Return `found`. Raises ObjectConflictError if a line differs from the topic's record at the line's offset."""
    for number, (offset, value) in enumerate(zip(found.offsets, found.values, strict=True), found.skip + 1):
        if not committed.has(offset, value):
            raise ObjectConflictError(
                f"Cannot adopt object {found.name.key}: its line {number} is not the record that topic "
                f"{found.name.topic}, partition {found.name.partition}, has at offset {offset}. The object "
                "comes from another topic with that name, or its sink connector omits records (errors.tolerance, a "
                "filter), changes them, or reads uncommitted records (consumer.override.isolation.level). Nothing was "
                "adopted. Correct the connector, and move the object to another prefix."
            )
    return found


def _require_named_offset(name: SinkName, found: Sequence[int], offset: int) -> None:
    if list(found) != [offset]:
        raise ObjectConflictError(
            f"Cannot adopt object {name.key}: it is named by offset {offset}, at which topic {name.topic}, partition "
            f"{name.partition}, has no committed record. It comes from another topic of that name, or its sink "
            "connector reads uncommitted records (consumer.override.isolation.level). Nothing was adopted. Correct the "
            "connector, and move the object to another prefix."
        )


def adoptable(topic: str, objects: Sequence[ObjectLines], span: Span, committed: CommittedRecords) -> Adoptable:
    """Return the records from the span's start up to the first missing one.

    Lines with the same offset are one record. Raises ObjectConflictError if their values differ.
    """
    lines_by_offset = _lines_by_offset(objects, span)
    taken: list[tuple[int, int]] = []
    next_offset = span.first
    for offset in sorted(lines_by_offset):
        missing = committed.between(next_offset, offset) if offset > next_offset else ()
        if missing is None or missing:
            name = objects[lines_by_offset[offset][0]].name
            next_offset = missing[0] if missing else next_offset
            gap = _gap(topic, span, f"{next_offset} to {offset - 1}", missing, name)
            return Adoptable(_entries(objects, taken), next_offset, gap)
        taken.append(lines_by_offset[offset])
        next_offset = offset + 1
    rest = committed.between(next_offset, span.next)
    if rest is None:
        gap = _gap(topic, span, f"{next_offset} to {span.next - 1}", None)
        return Adoptable(_entries(objects, taken), next_offset, gap)
    # Later records of the topic are not written yet; transaction markers are not records.
    return Adoptable(_entries(objects, taken), rest[0] if rest else span.next, None)


def _lines_by_offset(objects: Sequence[ObjectLines], span: Span) -> dict[int, tuple[int, int]]:
    """Return for each offset the first object that has it, and the index of its line."""
    lines_by_offset: dict[int, tuple[int, int]] = {}
    for number, each in enumerate(objects):
        for line, offset in enumerate(each.offsets):
            if not span.first <= offset < span.next:
                continue
            before, line_before = lines_by_offset.setdefault(offset, (number, line))
            if objects[before].values[line_before] != each.values[line]:
                raise ObjectConflictError(
                    f"Cannot adopt objects {objects[before].name.key} and {each.name.key}: they have different records "
                    f"at offset {offset} of partition {span.partition}. One comes from another topic of that name, or "
                    "the connector's converter was changed in between. Nothing was adopted. Move one of them to "
                    "another prefix."
                )
    return lines_by_offset


def _entries(objects: Sequence[ObjectLines], taken: Iterable[tuple[int, int]]) -> tuple[LandedObject, ...]:
    """Return an entry for each run of consecutive lines of one object."""
    lines: dict[int, list[int]] = {}
    for number, line in taken:
        lines.setdefault(number, []).append(line)
    entries = [
        objects[number].part(*run)
        for number, line_numbers in lines.items()
        for run in consecutive_runs(sorted(line_numbers))
    ]
    return tuple(sorted(entries, key=lambda item: item.first))


def _gap(topic: str, span: Span, offsets: str, missing: Sequence[int] | None, later: SinkName | None = None) -> Gap:
    where = f"topic {topic}, partition {span.partition}"
    though = f", though {later.key} contains later ones" if later else ""
    if missing is None:
        return Gap(
            f"{where}: no object contains the records of offsets {offsets}{though}, and some of these offsets have "
            "expired in the topic, so that records cannot be distinguished from transaction markers",
            expired=True,
        )
    records = f"{len(missing)} records are" if len(missing) > 1 else "1 record is"
    offsets_missing = f"offsets {missing[0]} to {missing[-1]}" if len(missing) > 1 else f"offset {missing[0]}"
    return Gap(f"{where}: {records} in no object ({offsets_missing}){though}", expired=False)
