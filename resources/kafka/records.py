"""Reads records of a topic by explicit offsets, up to an end that is fixed before reading begins."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from time import monotonic

from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, KafkaError, TopicPartition
from confluent_kafka import Message as RawMessage

from resources.errors import WaitTimedOut
from resources.kafka.client import Broker

Ranges = Mapping[int, tuple[int, int]]
"""First and next offset by partition."""

BATCH = 1000
_TIMEOUT_SECONDS = 0.01
"""A batch that is not full is returned after this time; each read ends with one."""


@dataclass(frozen=True)
class Message:
    """One record."""

    partition: int
    offset: int
    timestamp_ms: int | None
    """Milliseconds since 1970, as the producer or the broker set it."""
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()


def read(broker: Broker, topic: str, ranges: Ranges, *, read_committed: bool = True) -> Iterator[Message]:
    """Yield the committed records of the ranges, in order within a partition, without transaction markers.

    Raises:
        OffsetsExpired: a first offset is not in the topic.
        WaitTimedOut: no record arrived for longer than the broker's timeout.
    """
    for message in _raw(broker, topic, ranges, read_committed=read_committed):
        partition, offset = _position(message)
        kind, timestamp = message.timestamp()
        yield Message(
            partition=partition,
            offset=offset,
            timestamp_ms=None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
            key=_bytes(message.key()),
            value=_bytes(message.value()),
            headers=_headers(message),
        )


def count(broker: Broker, topic: str, ranges: Ranges) -> int:
    """Count the committed records of the ranges by reading them."""
    return sum(1 for _ in _raw(broker, topic, ranges, read_committed=True))


def tail(broker: Broker, topic: str, ranges: Ranges, limit: int) -> list[Message]:
    """Return the newest `limit` committed records of the ranges, oldest first (by timestamp)."""
    found: list[Message] = []
    for partition, bounds in ranges.items():
        found += _partition_tail(broker, topic, partition, bounds, limit)
    found.sort(key=lambda message: (message.timestamp_ms or 0, message.partition, message.offset))
    return found[-limit:]


def _partition_tail(broker: Broker, topic: str, partition: int, bounds: tuple[int, int], limit: int) -> list[Message]:
    first, end = bounds
    # Any number of the offsets before the end can be transaction markers and aborted records: step back further until
    # there are enough records.
    reach = 2 * limit
    while first < end:
        start = max(first, end - reach)
        found = list(read(broker, topic, {partition: (start, end)}))
        if len(found) >= limit or start == first:
            return found[-limit:]
        reach *= 4
    return []


def _raw(broker: Broker, topic: str, ranges: Ranges, *, read_committed: bool) -> Iterator[RawMessage]:
    ends = {partition: end for partition, (first, end) in ranges.items() if first < end}
    if not ends:
        return
    with closing(broker.consumer(read_committed=read_committed)) as consumer:
        consumer.assign([TopicPartition(topic, partition, ranges[partition][0]) for partition in ends])
        last_record_at = monotonic()
        while ends:
            batch = consumer.consume(num_messages=BATCH, timeout=_TIMEOUT_SECONDS)
            if batch:
                last_record_at = monotonic()
            elif monotonic() - last_record_at > broker.timeout_seconds:
                raise WaitTimedOut(
                    f"Cannot read topic {topic} to its end: Kafka sent no record for {broker.timeout_seconds:.0f} s. "
                    f"Incomplete: partition {', '.join(map(str, ends))}.",
                    broker.hint,
                )
            for message in batch:
                partition, offset = _position(message)
                end = ends.get(partition, 0)
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise broker.explained(error, f"read topic {topic}")
                if error is None and offset < end:
                    yield message
                # Only markers can follow the last record; then the consumer reports the end of the committed records,
                # or returns a record after the range.
                if offset >= (end if error else end - 1):
                    ends.pop(partition, None)


def _position(message: RawMessage) -> tuple[int, int]:
    partition, offset = message.partition(), message.offset()
    return (-1 if partition is None else partition), (-1 if offset is None else offset)


def _headers(message: RawMessage) -> tuple[tuple[str, bytes | None], ...]:
    headers = message.headers() or []
    pairs = headers.items() if isinstance(headers, dict) else headers
    return tuple((name, _bytes(value)) for name, value in pairs)


def _bytes(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return str(value).encode()
