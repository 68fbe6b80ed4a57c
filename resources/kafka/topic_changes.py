"""Creates, alters and deletes topics."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from confluent_kafka.admin import (  # type: ignore[attr-defined]  # the stubs lack the re-exports
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from resources.errors import TopicContractBroken, TopicMissing
from resources.kafka.client import Broker
from resources.kafka.topic_settings import TopicInfo, describe, settings
from resources.waiting import until

UNLIMITED = -1


@dataclass(frozen=True)
class TopicChange:
    """The result of `ensure_topic`."""

    action: Literal["created", "altered", "unchanged"]
    topic: TopicInfo
    changes: tuple[str, ...] = ()
    """Each altered setting: `name: old -> new`."""


def ensure(
    broker: Broker, admin: AdminClient, name: str, partitions: int = 1, config: Mapping[str, str] | None = None
) -> TopicChange:
    """Create the topic with cleanup.policy=delete and `config`, or check the existing one.

    An existing topic gets the settings in `config`, but its retention and maximum record size are never lowered.

    Raises:
        TopicContractBroken: the existing topic has another number of partitions, or another cleanup policy.
    """
    wanted = {"cleanup.policy": "delete", **(config or {})}
    found = describe(broker, admin, name)
    if found is None:
        topic = NewTopic(name, num_partitions=partitions, replication_factor=-1, config=wanted)
        broker.answer(
            admin.create_topics([topic], request_timeout=broker.timeout_seconds)[name], f"create topic {name}"
        )
        return TopicChange("created", wait_for(broker, admin, name))
    if found.partitions != partitions:
        raise TopicContractBroken(
            f"Cannot change topic {name} from {found.partitions} to {partitions} partitions: the changes of a key would"
            f" be in two partitions, out of order. Keep the number of partitions, or reset the pipeline after all"
            " its records are landed."
        )
    current = settings(broker, admin, name)
    if current["cleanup.policy"] != wanted["cleanup.policy"]:
        raise TopicContractBroken(
            f"Cannot use topic {name}: its cleanup.policy is {current['cleanup.policy']}, not"
            f" {wanted['cleanup.policy']}, so that compaction may have removed records before they were landed. Reset"
            " the pipeline. If you know that no record is missing, set the policy in Kafka instead."
        )
    changes = {key: value for key, value in wanted.items() if _is_change(key, current.get(key), value)}
    if not changes:
        return TopicChange("unchanged", found)
    _alter(broker, admin, name, changes)
    return TopicChange(
        "altered",
        wait_for(broker, admin, name),
        tuple(f"{key}: {current.get(key)} -> {value}" for key, value in changes.items()),
    )


def _is_change(key: str, current: str | None, wanted: str) -> bool:
    if key == "max.message.bytes" and current is not None:
        return int(wanted) > int(current)
    if key in ("retention.ms", "retention.bytes") and current is not None:
        # Never lower them: an operator may have set a larger value on purpose.
        return int(current) != UNLIMITED and (int(wanted) == UNLIMITED or int(wanted) > int(current))
    return current != wanted


def delete(broker: Broker, admin: AdminClient, name: str) -> bool:
    """Delete the topic and wait until it is gone; return whether there was one."""
    request = admin.delete_topics([name], request_timeout=broker.timeout_seconds)[name]
    try:
        broker.answer(request, f"delete topic {name}")
    except TopicMissing:
        return False
    until(
        lambda: describe(broker, admin, name),
        lambda found: found is None,
        seconds=3 * broker.timeout_seconds,
        what=f"topic {name} to be deleted",
        state=lambda found: "missing" if found is None else "it still exists",
    )
    return True


def wait_for(broker: Broker, admin: AdminClient, name: str) -> TopicInfo:
    """Wait until the broker reports the topic; return it."""
    found = until(
        lambda: describe(broker, admin, name),
        lambda seen: seen is not None,
        seconds=3 * broker.timeout_seconds,
        what=f"topic {name} to appear",
        state=lambda found: "missing" if found is None else "it exists",
    )
    if found is None:
        raise TopicMissing(f"Cannot use topic {name}: another program deleted it at the same moment. Run this again.")
    return found


def _alter(broker: Broker, admin: AdminClient, name: str, changes: Mapping[str, str]) -> None:
    entries = [ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in changes.items()]
    resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
    request = admin.incremental_alter_configs([resource], request_timeout=broker.timeout_seconds)[resource]
    broker.answer(request, f"change {', '.join(changes)} of topic {name}")
