"""What a topic itself says of its offsets: which of them are records, and of what value.

Transaction markers take offsets, aborted records do too. A sink connector's objects tell of neither: only the topic
tells a gap from a marker, and for lines without an offset, which offset is whose.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Protocol


class TopicReader(Protocol):
    """One topic."""

    def records(self, partition: int, first: int, end: int) -> Iterable[tuple[int, int]] | None:
        """Return the offset and fingerprint_number() of each committed record in [first, end), ascending.

        Returns None where some of them have expired. There can be many records, so their values are not kept.
        """


class CommittedRecords:
    """One partition's committed records before `end`; what was asked of the topic once is not asked again."""

    def __init__(self, record: TopicReader, partition: int, end: int) -> None:
        self._record = record
        self._partition = partition
        self._end = end
        self._known_from = end
        self._offsets: array[int] = array("q")
        self._prints: array[int] = array("Q")

    def between(self, first: int, end: int) -> Sequence[int] | None:
        """The offsets of committed records in [first, end), None where the topic has not got all of it any more."""
        if first < self._known_from:
            found = self._record.records(self._partition, first, self._end)
            if found is None:
                return None
            self._offsets, self._prints, self._known_from = array("q"), array("Q"), first
            for offset, print_ in found:
                self._offsets.append(offset)
                self._prints.append(print_)
        return self._offsets[bisect_left(self._offsets, first) : bisect_left(self._offsets, end)]

    def has(self, offset: int, value: bytes) -> bool:
        """Whether the record at an offset that between() gave has this value, however its JSON is spelled."""
        return self._prints[bisect_left(self._offsets, offset)] == fingerprint_number(value)


def fingerprint(value: bytes | None) -> str:
    """fingerprint_number() a value as a manifest has it."""
    return fingerprint_text(fingerprint_number(value))


def fingerprint_text(print_: int) -> str:
    """What fingerprint_number() returned, as 16 hexadecimal digits."""
    return f"{print_:016x}"


def fingerprint_number(value: bytes | None) -> int:
    """Eight bytes, the same for the same JSON value: a converter may spell members and numbers otherwise."""
    try:
        plain = json.dumps(json.loads(value or b"null"), sort_keys=True).encode()
    except (ValueError, RecursionError):
        plain = value or b""
    return int.from_bytes(hashlib.blake2b(plain, digest_size=8).digest(), "big")
