"""Reads topics' partitions and settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from confluent_kafka import TopicCollection
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the stubs lack the re-exports
    AdminClient,
    ConfigResource,
    ResourceType,
    TopicDescription,
)

from resources.errors import TopicMissing
from resources.kafka.client import Broker

OWN_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state", "__cluster_metadata"})
SHOWN = ("cleanup.policy", "retention.ms", "retention.bytes")


@dataclass(frozen=True)
class TopicInfo:
    """One topic."""

    name: str
    topic_id: str
    """Kafka's UUID of the topic; a topic re-created under the same name has another one."""
    partitions: int
    config: Mapping[str, str] = field(default_factory=dict)
    """cleanup.policy, retention.ms (-1: unlimited), retention.bytes (per partition; -1: unlimited)."""


def names(broker: Broker, admin: AdminClient) -> tuple[str, ...]:
    """Return the names of all topics except Kafka's internal ones, sorted."""
    with broker.translate_errors("list the topics"):
        found = admin.list_topics(timeout=broker.timeout_seconds).topics
    return tuple(sorted(name for name in found if name not in OWN_TOPICS))


def describe(broker: Broker, admin: AdminClient, name: str) -> TopicInfo | None:
    """Return the topic, None if it does not exist."""
    try:
        description = _description(broker, admin, name, f"describe topic {name}")
        found = settings(broker, admin, name)
    except TopicMissing:
        return None
    return TopicInfo(
        name=name,
        topic_id=str(description.topic_id),
        partitions=len(description.partitions),
        config={key: found[key] for key in SHOWN},
    )


def partitions(broker: Broker, admin: AdminClient, name: str) -> int:
    """Return the number of the topic's partitions; raise TopicMissing."""
    return len(_description(broker, admin, name, f"read the partitions of topic {name}").partitions)


def _description(broker: Broker, admin: AdminClient, name: str, about: str) -> TopicDescription:
    request = admin.describe_topics(TopicCollection([name]), request_timeout=broker.timeout_seconds)[name]
    found: TopicDescription = broker.answer(request, about)
    return found


def settings(broker: Broker, admin: AdminClient, name: str) -> dict[str, str]:
    """Return all settings of the topic, including defaults; raise TopicMissing."""
    resource = ConfigResource(ResourceType.TOPIC, name)
    request = admin.describe_configs([resource], request_timeout=broker.timeout_seconds)[resource]
    return {key: entry.value for key, entry in broker.answer(request, f"read the settings of topic {name}").items()}
