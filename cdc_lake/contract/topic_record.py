"""What a topic itself says of its offsets: which of them are records.

Transaction markers take offsets, aborted records do too. A sink connector's objects tell of neither: only the topic
tells a gap from a marker, and for lines without an offset, which offset is whose.

Here: the question, and its answers for a range, kept. Not here: asking Kafka (pipeline/adoption.py).
"""

from __future__ import annotations

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Protocol


class TopicRecord(Protocol):
    """One topic."""

    def offsets(self, partition: int, first: int, end: int) -> Iterable[int] | None:
        """The offsets of committed records in [first, end), ascending; None where some of it has expired."""


class Committed:
    """One partition's committed records before `end`; what was asked of the topic once is not asked again."""

    def __init__(self, record: TopicRecord, partition: int, end: int) -> None:
        self._record = record
        self._partition = partition
        self._end = end
        self._known_from = end
        self._offsets: array[int] = array("q")

    def between(self, first: int, end: int) -> Sequence[int] | None:
        """The offsets of committed records in [first, end), None where the topic has not got all of it any more."""
        if first < self._known_from:
            found = self._record.offsets(self._partition, first, self._end)
            if found is None:
                return None
            self._offsets, self._known_from = array("q", found), first
        return self._offsets[bisect_left(self._offsets, first) : bisect_left(self._offsets, end)]
