"""Reads a topic's records in fixed ranges of offsets."""

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
"""By partition: the first offset, and the offset after the last."""

BATCH = 1000
_TIMEOUT_SECONDS = 0.01
"""The wait for a batch to fill up. The last batch of a read is usually not full, so each read waits this long once."""


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
        OffsetsExpired: the topic does not contain a range's first offset.
        WaitTimedOut: no record arrived for longer than the broker's timeout.
    """
    for batch in raw_batches(broker, topic, ranges, read_committed=read_committed):
        for message in batch:
            partition, offset = _position(message)
            kind, timestamp = message.timestamp()
            yield Message(
                partition=partition,
                offset=offset,
                timestamp_ms=None if kind == TIMESTAMP_NOT_AVAILABLE else timestamp,
                key=_bytes(message.key()),
                value=_bytes(message.value()),
                headers=headers(message),
            )


def count(broker: Broker, topic: str, ranges: Ranges) -> int:
    """Return the number of committed records in the ranges; reads them all."""
    return sum(len(batch) for batch in raw_batches(broker, topic, ranges))


def tail(broker: Broker, topic: str, ranges: Ranges, limit: int) -> list[Message]:
    """Return the newest `limit` committed records of the ranges, oldest first (by timestamp)."""
    found: list[Message] = []
    for partition, bounds in ranges.items():
        found += _partition_tail(broker, topic, partition, bounds, limit)
    found.sort(key=lambda message: (message.timestamp_ms or 0, message.partition, message.offset))
    return found[-limit:]


def _partition_tail(broker: Broker, topic: str, partition: int, bounds: tuple[int, int], limit: int) -> list[Message]:
    first, end = bounds
    # Any number of the last offsets can belong to transaction markers and aborted records, so read from further back
    # until there are enough records.
    distance = 2 * limit
    while first < end:
        start = max(first, end - distance)
        found = list(read(broker, topic, {partition: (start, end)}))
        if len(found) >= limit or start == first:
            return found[-limit:]
        distance *= 4
    return []


def raw_batches(
    broker: Broker, topic: str, ranges: Ranges, *, read_committed: bool = True
) -> Iterator[list[RawMessage]]:
    """Yield librdkafka's messages of the ranges as they arrive, at most BATCH at once. Raises what read() raises."""
    ends = {partition: end for partition, (first, end) in ranges.items() if first < end}
    if not ends:
        return
    with closing(broker.consumer(read_committed=read_committed)) as consumer:
        consumer.assign([TopicPartition(topic, partition, ranges[partition][0]) for partition in ends])
        last_record_at = monotonic()
        while ends:
            with broker.translate_errors(f"read topic {topic}"):
                batch = consumer.consume(num_messages=BATCH, timeout=_TIMEOUT_SECONDS)
            if not batch and monotonic() - last_record_at > broker.timeout_seconds:
                raise WaitTimedOut(
                    f"Cannot read topic {topic} to its end: Kafka sent no record for {broker.timeout_seconds:.0f} s. "
                    f"Incomplete partitions: {', '.join(map(str, ends))}.",
                    broker.hint,
                )
            found = []
            for message in batch:
                partition, offset = _position(message)
                end = ends.get(partition, 0)
                error = message.error()
                if error is not None and error.code() != KafkaError._PARTITION_EOF:
                    raise broker.translated(error, f"read topic {topic}")
                if error is None and offset < end:
                    found.append(message)
                # The last offsets can belong to transaction markers, which the consumer does not return. The range is
                # then complete when the consumer reports the partition's end, or returns a record after the range.
                if offset >= (end if error else end - 1):
                    ends.pop(partition, None)
            if found:
                yield found
            if batch:
                last_record_at = monotonic()  # after the caller's work, which may take longer than the time-out


def _position(message: RawMessage) -> tuple[int, int]:
    partition, offset = message.partition(), message.offset()
    return (-1 if partition is None else partition), (-1 if offset is None else offset)


def headers(message: RawMessage) -> tuple[tuple[str, bytes | None], ...]:
    """Return the names and values of a message's headers."""
    found = message.headers() or []
    pairs = found.items() if isinstance(found, dict) else found
    return tuple((name, _bytes(value)) for name, value in pairs)


def _bytes(value: object) -> bytes | None:
    if value is None or isinstance(value, bytes):
        return value
    return str(value).encode()
