"""Builds MSK Connect's request for a connector, and compares it with the running connector."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg
from pydantic import Field

from resources.aws.matching import matches
from resources.errors import ConnectorConfigInvalid

Request = dict[str, Any]
IN_PLACE = ("capacity", "plugins", "workerConfiguration")
"""Settings that UpdateConnector changes, but not in the same request as the connector's configuration."""
_CLUSTER = "kafkaCluster"
_FIXED = (
    *(_CLUSTER, "kafkaClusterClientAuthentication", "kafkaClusterEncryptionInTransit", "kafkaConnectVersion"),
    *("serviceExecutionRoleArn", "logDelivery"),
)
_CLASS = "connector.class"


class Plugin(dg.Config):
    """A custom plugin and its connector class."""

    connector_class: str
    arn: str
    revision: int = Field(default=1, ge=1)


class WorkerConfiguration(dg.Config):
    """A worker configuration and its revision.

    It has to set `offset.storage.topic`: otherwise MSK Connect creates a topic for each connector, and a re-created
    connector would start without offsets.
    """

    arn: str
    revision: int = Field(default=1, ge=1)


class ConnectSettings(dg.Config):
    """The settings of all connectors: everything in a request except name and configuration.

    `worker_configurations` are by connector; `mcu_count` is a worker's size (1, 2, 4 or 8). With `max_workers`, MSK
    Connect scales by CPU between `workers` and `max_workers`, which does not help a source connector with one task.
    """

    subnets: list[str]
    security_groups: list[str]
    role_arn: str
    plugins: list[Plugin]
    worker_configurations: dict[str, WorkerConfiguration]
    log_group: str
    kafka_connect_version: str = "3.7.x"
    mcu_count: int = 1
    workers: int = Field(default=1, ge=1)
    max_workers: int | None = None
    tags: dict[str, str] = Field(default_factory=dict)


def create_request(settings: ConnectSettings, name: str, config: Mapping[str, str], bootstrap_servers: str) -> Request:
    """Return the parameters of CreateConnector.

    Raises ConnectorConfigInvalid if no plugin has the connector's class, or the connector has no worker configuration.
    """
    kind = config.get(_CLASS, "")
    plugin = next((each for each in settings.plugins if each.connector_class == kind), None)
    if plugin is None:
        raise ConnectorConfigInvalid(
            f"Cannot deploy connector {name}: there is no custom plugin for its class {kind or '(none)'}. Add one to"
            f" `plugins`, which has {', '.join(each.connector_class for each in settings.plugins) or 'none'}."
        )
    worker = worker_configuration(settings, name)
    cluster = {"securityGroups": settings.security_groups, "subnets": settings.subnets}
    request: Request = {
        "connectorName": name,
        "connectorConfiguration": dict(config),
        "capacity": _capacity(settings),
        "kafkaCluster": {"apacheKafkaCluster": {"bootstrapServers": bootstrap_servers, "vpc": cluster}},
        "kafkaClusterClientAuthentication": {"authenticationType": "IAM"},
        "kafkaClusterEncryptionInTransit": {"encryptionType": "TLS"},
        "kafkaConnectVersion": settings.kafka_connect_version,
        "logDelivery": {"workerLogDelivery": {"cloudWatchLogs": {"enabled": True, "logGroup": settings.log_group}}},
        "plugins": [{"customPlugin": {"customPluginArn": plugin.arn, "revision": plugin.revision}}],
        "serviceExecutionRoleArn": settings.role_arn,
        "workerConfiguration": {"workerConfigurationArn": worker.arn, "revision": worker.revision},
    }
    return {**request, "tags": settings.tags} if settings.tags else request


def worker_configuration(settings: ConnectSettings, name: str) -> WorkerConfiguration:
    """Return the connector's worker configuration. Raises ConnectorConfigInvalid if it is not configured."""
    found = settings.worker_configurations.get(name)
    if found is None:
        raise ConnectorConfigInvalid(
            f"Cannot deploy connector {name}: it has no worker configuration, which sets its offsets topic. Add one to"
            f" `worker_configurations`, which has {', '.join(settings.worker_configurations) or 'none'}."
        )
    return found


def offsets_topic(arn: str, properties: str) -> str:
    """Return the offsets topic in a worker configuration. Raises ConnectorConfigInvalid if it does not set one."""
    lines = (line.partition("=") for line in properties.splitlines())
    found = next((value.strip() for name, _, value in lines if name.strip() == "offset.storage.topic"), "")
    if not found:
        raise ConnectorConfigInvalid(
            f"Cannot use the worker configuration {arn}: it does not set offset.storage.topic. MSK Connect would create"
            " a topic for each connector, and a re-created connector would lose its offsets. Create a worker"
            " configuration that sets it."
        )
    return found


def _capacity(settings: ConnectSettings) -> Request:
    if settings.max_workers is None:
        return {"provisionedCapacity": {"mcuCount": settings.mcu_count, "workerCount": settings.workers}}
    return {
        "autoScaling": {
            "mcuCount": settings.mcu_count,
            "minWorkerCount": settings.workers,
            "maxWorkerCount": settings.max_workers,
            "scaleInPolicy": {"cpuUtilizationPercentage": 20},
            "scaleOutPolicy": {"cpuUtilizationPercentage": 80},
        }
    }


def unchangeable_differences(wanted: Request, actual: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the settings that differ and that UpdateConnector cannot change."""
    differ = [name for name in _FIXED if not matches(wanted[name], actual.get(name))]
    if _CLUSTER in differ and _is_one_cluster(wanted[_CLUSTER], actual.get(_CLUSTER)):
        differ.remove(_CLUSTER)
    other_class = wanted["connectorConfiguration"][_CLASS] != actual["connectorConfiguration"].get(_CLASS)
    return (*differ, *([_CLASS] if other_class else []))


def _is_one_cluster(wanted: Mapping[str, Any], actual: Mapping[str, Any] | None) -> bool:
    """Return whether both name the same cluster and network.

    One common broker is enough: of a cluster with more than three brokers, MSK returns three, not always the same.
    """
    desired, running = (dict((each or {}).get("apacheKafkaCluster", {})) for each in (wanted, actual))
    brokers = [set(str(each.pop("bootstrapServers", "")).split(",")) - {""} for each in (desired, running)]
    return matches(desired, running) and bool(brokers[0] & brokers[1])


def worker_changes(wanted: Request, actual: Mapping[str, Any]) -> Request:
    """Return the worker settings that differ and can be updated in place."""
    return {name: wanted[name] for name in IN_PLACE if name in wanted and not matches(wanted[name], actual.get(name))}
