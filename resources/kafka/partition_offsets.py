"""The begin and end offsets of a topic's partitions."""

from __future__ import annotations

from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec  # type: ignore[attr-defined]  # not in the stubs
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from resources.errors import LeaderMoving
from resources.kafka.client import Broker
from resources.kafka.topic_settings import partitions

_EARLIEST: OffsetSpec = OffsetSpec.earliest()  # type: ignore[no-untyped-call]
_LATEST: OffsetSpec = OffsetSpec.latest()  # type: ignore[no-untyped-call]


def begin_offsets(broker: Broker, admin: AdminClient, topic: str) -> dict[int, int]:
    """Return the first available offset by partition; raise TopicMissing."""
    return _offsets(broker, admin, topic, _EARLIEST)


def end_offsets(broker: Broker, admin: AdminClient, topic: str) -> dict[int, int]:
    """Return the last stable offset by partition; raise TopicMissing.

    All transactions with records below it are committed or aborted; open transactions start at or above it.
    """
    return _offsets(broker, admin, topic, _LATEST)


def written_offsets(broker: Broker, admin: AdminClient, topic: str) -> dict[int, int]:
    """Return the offset after the last record by partition, also of open transactions; raise TopicMissing.

    Kafka writes a transaction's end to each partition separately, so a transaction can be committed in one partition
    and still be open in another. Once end_offsets() has reached these offsets, all earlier transactions are complete.
    """
    return _offsets(broker, admin, topic, _LATEST, IsolationLevel.READ_UNCOMMITTED)


def _offsets(
    broker: Broker,
    admin: AdminClient,
    topic: str,
    spec: OffsetSpec,
    isolation: IsolationLevel = IsolationLevel.READ_COMMITTED,
) -> dict[int, int]:
    # A broker reports a new topic before its partitions have a leader.
    attempts = Retrying(
        stop=stop_after_delay(broker.timeout_seconds),
        wait=wait_fixed(0.1),
        retry=retry_if_exception_type(LeaderMoving),
        reraise=True,
    )
    return attempts(_offsets_now, broker, admin, topic, spec, isolation)


def _offsets_now(
    broker: Broker, admin: AdminClient, topic: str, spec: OffsetSpec, isolation: IsolationLevel
) -> dict[int, int]:
    requests = admin.list_offsets(
        {TopicPartition(topic, number): spec for number in range(partitions(broker, admin, topic))},
        isolation_level=isolation,
        request_timeout=broker.timeout_seconds,
    )
    return {
        partition.partition: int(broker.answer(request, f"read the offsets of topic {topic}").offset)
        for partition, request in requests.items()
    }
