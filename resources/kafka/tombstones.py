"""Writes tombstones to a compacted topic."""

from __future__ import annotations

from collections.abc import Iterable

from confluent_kafka import KafkaError, KafkaException, Message

from resources.errors import WaitTimedOut
from resources.kafka.client import Broker


def write(broker: Broker, topic: str, keys: Iterable[tuple[int, bytes]]) -> int:
    """Write a tombstone for each (partition, key); return their number when all in-sync replicas have them.

    Raises TopicMissing, Unreachable, AccessRefused or KafkaRequestFailed if a write fails, or WaitTimedOut.
    """
    failed: list[KafkaError] = []

    def on_delivery(error: KafkaError | None, _: Message) -> None:
        if error is not None:
            failed.append(error)

    about = f"write tombstones to topic {topic}"
    producer, count = broker.producer(), 0
    with broker.translate_errors(about):
        for partition, key in keys:
            producer.produce(topic, key=key, value=None, partition=partition, on_delivery=on_delivery)
            count += 1
        pending = producer.flush(broker.timeout_seconds)
        if failed:
            raise KafkaException(failed[0])
    if pending:
        seconds = f"{broker.timeout_seconds:.0f} s"
        raise WaitTimedOut(
            f"Cannot {about}: Kafka did not acknowledge {pending} of {count} tombstones within {seconds}.", broker.hint
        )
    return count
