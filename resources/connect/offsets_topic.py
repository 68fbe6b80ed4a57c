"""Reads and deletes connectors' source offsets in the offsets topic, for workers without a REST interface.

A record's key is the JSON array [connector, source partition], its value the offset as a JSON object; a tombstone
deletes it. Source: org.apache.kafka.connect.storage.OffsetStorageWriter and KafkaOffsetBackingStore of Kafka.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from resources.errors import ResourceError, TopicMissing
from resources.kafka.records import Message
from resources.kafka.resource import Kafka

_NEWEST = 100


class OffsetsUnreadable(ResourceError):  # noqa: N818 - named like the exceptions in resources/errors.py
    """A record of an offsets topic does not have Connect's format."""


@dataclass(frozen=True)
class _Stored:
    partition: int
    key: bytes
    offset: dict[str, object]


@dataclass(frozen=True)
class StoredOffsets:
    """The offsets in one topic, which the connectors of several workers may share.

    Methods raise the errors of Kafka.tail(), Kafka.peek() and Kafka.write_tombstones(), and OffsetsUnreadable. A
    missing topic counts as empty, since the first worker creates it.
    """

    kafka: Kafka
    topic: str

    def read(self, connector: str) -> tuple[dict[str, object], ...]:
        """Return the connector's offsets, one for each source partition.

        Reads the newest records, and the whole topic only if these contain no offset of the connector. A running worker
        writes an offset every `offset.flush.interval.ms`, and Kafka does not compact the topic's active segment, so the
        topic can contain the records of a week.
        """
        try:
            newest = self._stored(connector, self.kafka.tail(self.topic, _NEWEST))
        except TopicMissing:
            return ()
        return tuple(each.offset for each in newest or self._stored(connector, self._records()))

    def delete(self, connector: str) -> int:
        """Delete all offsets of a stopped connector by tombstones; return the number of source partitions."""
        found = [(each.partition, each.key) for each in self._stored(connector, self._records())]
        return self.kafka.write_tombstones(self.topic, found) if found else 0

    def _stored(self, connector: str, records: Iterable[Message]) -> list[_Stored]:
        newest: dict[tuple[int, bytes], _Stored] = {}
        for message in records:
            if message.key is None or not self._belongs_to(connector, message.key):
                continue
            place = (message.partition, message.key)
            if message.value is None:
                newest.pop(place, None)
            else:
                newest[place] = _Stored(*place, self._offset(message.value))
        return list(newest.values())

    def _records(self) -> Iterator[Message]:
        try:
            # All records of a key are in one partition, so they arrive in the order in which they were written.
            yield from self.kafka.peek(self.topic)
        except TopicMissing:
            return

    def _belongs_to(self, connector: str, key: bytes) -> bool:
        found = self._json(key)
        if not isinstance(found, list) or len(found) != 2:
            raise self._unreadable(key)
        return bool(found[0] == connector)

    def _offset(self, value: bytes) -> dict[str, object]:
        offset = self._json(value)
        if not isinstance(offset, dict):
            raise self._unreadable(value)
        return offset

    def _json(self, text: bytes) -> object:
        try:
            return json.loads(text)
        except ValueError as error:
            raise self._unreadable(text) from error

    def _unreadable(self, text: bytes) -> OffsetsUnreadable:
        return OffsetsUnreadable(
            f"Cannot read the offsets topic {self.topic}: Kafka Connect does not write records such as {text[:80]!r}.",
            "Set offset.storage.topic of the worker configuration to a topic that only Connect writes.",
        )
