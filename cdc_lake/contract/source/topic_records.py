"""The committed records of a topic: which offsets are records, and the fingerprints of their values.

Transaction markers and aborted records have offsets too, but a sink connector's objects do not contain them. Only the
topic shows whether an offset that is missing in an object belongs to a record or a marker. If the lines of an object
contain no offsets, only the topic has them.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Protocol


class TopicReader(Protocol):
    """Reads the committed records of one topic."""

    def records(self, partition: int, first: int, end: int) -> Iterable[tuple[int, int]] | None:
        """Return the offset and fingerprint_number() of each committed record in [first, end), ascending.

        Return None if some of them have expired. Values are not returned, because there can be many records.
        """


class CommittedRecords:
    """One partition's committed records before `end`; offsets and fingerprints that were read are cached."""

    def __init__(self, topic: TopicReader, partition: int, end: int) -> None:
        self._topic = topic
        self._partition = partition
        self._end = end
        self._known_from = end
        self._offsets: array[int] = array("q")
        self._prints: array[int] = array("Q")

    def between(self, first: int, end: int) -> Sequence[int] | None:
        """Return the offsets of committed records in [first, end), None if some of them have expired."""
        if first < self._known_from:
            found = self._topic.records(self._partition, first, self._end)
            if found is None:
                return None
            self._offsets, self._prints, self._known_from = array("q"), array("Q"), first
            for offset, number in found:
                self._offsets.append(offset)
                self._prints.append(number)
        return self._offsets[bisect_left(self._offsets, first) : bisect_left(self._offsets, end)]

    def has(self, offset: int, value: bytes) -> bool:
        """Return whether the record at an offset that between() returned has this value; equal JSON values match."""
        return self._prints[bisect_left(self._offsets, offset)] == fingerprint_number(value)


def fingerprint(value: bytes | None) -> str:
    """Return a value's fingerprint as manifests store it: 16 hexadecimal digits."""
    return fingerprint_text(fingerprint_number(value))


def fingerprint_text(print_: int) -> str:
    """Return the result of fingerprint_number() as 16 hexadecimal digits."""
    return f"{print_:016x}"


def fingerprint_number(value: bytes | None) -> int:
    """Return an 8-byte hash of a JSON value. It ignores formatting, because converters format JSON differently."""
    try:
        plain = json.dumps(json.loads(value or b"null"), sort_keys=True).encode()
    except (ValueError, RecursionError):
        plain = value or b""
    return int.from_bytes(hashlib.blake2b(plain, digest_size=8).digest(), "big")
