"""Connectors on MSK Connect: create, update in place, re-create, delete, and status."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cdc_lake_tests.aws_api.kafkaconnect.in_memory import Served, served
from cdc_lake_tests.fakes.source.kafka import FakeKafka
from resources.aws.aws_resource import AwsRequestFailed
from resources.errors import ConnectorConfigInvalid, ConnectorFailed, ConnectorMissing
from resources.msk_connect.connector_request import ConnectSettings, Plugin, WorkerConfiguration
from resources.msk_connect.resource import MskConnect

KIND = "io.debezium.connector.postgresql.PostgresConnector"
CONFIG = {"connector.class": KIND, "tasks.max": "1"}


@pytest.fixture
def aws() -> Iterator[Served]:
    """A fake MSK Connect API."""
    with served() as found:
        yield found


@pytest.fixture
def settings(aws: Served) -> ConnectSettings:
    """Settings with one plugin and worker configurations for two connectors."""
    location = {"s3Location": {"bucketArn": "arn:aws:s3:::bucket", "fileKey": "debezium.zip"}}
    plugin = aws.client().create_custom_plugin(name="debezium", contentType="ZIP", location=location)
    return ConnectSettings(
        subnets=["subnet-2", "subnet-1"],
        security_groups=["sg-1"],
        role_arn="arn:aws:iam::123456789012:role/connect",
        plugins=[Plugin(connector_class=KIND, arn=plugin["customPluginArn"])],
        worker_configurations={
            name: workers(aws, name, f"offset.storage.topic=offsets-{name}") for name in ("shop", "shop-two")
        },
        log_group="/cdc-lake/connect",
        tags={"pipeline": "shop"},
    )


def workers(aws: Served, name: str, properties: str) -> WorkerConfiguration:
    """Create a worker configuration."""
    return WorkerConfiguration(arn=aws.api.plugins.add_worker_configuration(name, properties))


def connect(aws: Served, settings: ConnectSettings, kafka: FakeKafka | None = None, **changes: object) -> MskConnect:
    """Return the resource; `changes` replace settings."""
    return MskConnect(
        kafka=kafka or FakeKafka(),
        endpoint_url=aws.url,
        access_key="key",
        secret_key="secret",
        attempts=1,
        settings=settings.model_copy(update=changes),
        poll_seconds=0.01,
        change_seconds=5,
    )


@pytest.fixture
def running(aws: Served, settings: ConnectSettings) -> MskConnect:
    """The resource, with a running connector `shop`."""
    found = connect(aws, settings)
    assert found.put("shop", CONFIG) == "created"
    assert found.wait_running("shop").state == "RUNNING"
    return found


def shop(aws: Served) -> dict[str, Any]:
    """Return the API's record of the only connector."""
    [found] = aws.api.connectors.values()
    return found


def puts(aws: Served) -> list[str]:
    """Return a list that records the connectors put on the worker from now on."""
    found: list[str] = []
    aws.worker.listeners.append(found.append)
    return found


def test_a_connector_is_created_once_and_unchanged_without_a_difference(aws: Served, settings: ConnectSettings) -> None:
    found, put = connect(aws, settings), puts(aws)
    assert (found.status("shop"), found.get("shop")) == (None, None)
    assert found.put("shop", CONFIG) == "created"
    assert str(found.wait_running("shop")) == "shop is RUNNING"
    assert found.put("shop", CONFIG) == "unchanged"
    assert (found.get("shop"), put) == (CONFIG, ["shop"])


def test_a_connector_with_the_same_name_prefix_is_distinct(aws: Served, settings: ConnectSettings) -> None:
    found = connect(aws, settings)
    found.put("shop-two", CONFIG)
    assert found.status("shop") is None
    assert found.put("shop", CONFIG) == "created"


def test_configuration_and_workers_are_updated_in_place(
    aws: Served, settings: ConnectSettings, running: MskConnect
) -> None:
    arn, config = shop(aws)["connectorArn"], {**CONFIG, "poll.interval.ms": "50"}
    larger = connect(aws, settings, mcu_count=2)
    assert larger.put("shop", config) == "updated"
    assert shop(aws)["connectorArn"] == arn
    assert aws.worker.get("shop") == running.get("shop") == config
    assert shop(aws)["capacity"]["provisionedCapacity"]["mcuCount"] == 2
    assert larger.put("shop", config) == "unchanged"


@pytest.mark.usefixtures("running")
def test_tags_are_added_and_changed_and_other_tags_are_kept(aws: Served, settings: ConnectSettings) -> None:
    shop(aws)["tags"]["cost-centre"] = "7"
    put = puts(aws)
    assert connect(aws, settings, tags={}).put("shop", CONFIG) == "unchanged"
    other = connect(aws, settings, tags={"pipeline": "shop", "owner": "data"})
    assert other.put("shop", CONFIG) == "updated"
    assert other.put("shop", CONFIG) == "unchanged"
    assert shop(aws)["tags"] == {"pipeline": "shop", "owner": "data", "cost-centre": "7"}
    assert put == [], "a tag does not change the connector"


@pytest.mark.usefixtures("running")
@pytest.mark.parametrize("changes", [{"log_group": "/other"}, {"role_arn": "arn:aws:iam::123456789012:role/other"}])
def test_settings_that_cannot_be_updated_re_create_the_connector(
    aws: Served, settings: ConnectSettings, changes: dict[str, Any]
) -> None:
    before = shop(aws)["connectorArn"]
    assert connect(aws, settings, **changes).put("shop", CONFIG) == "updated"
    assert (shop(aws)["connectorName"], shop(aws)["connectorArn"] != before) == ("shop", True)
    assert aws.worker.get("shop") == CONFIG


@pytest.mark.usefixtures("running")
def test_the_order_of_subnets_is_not_a_difference(aws: Served, settings: ConnectSettings) -> None:
    assert connect(aws, settings, subnets=["subnet-1", "subnet-2"]).put("shop", CONFIG) == "unchanged"


@pytest.mark.parametrize("brokers", ["b-3:9098,b-1:9098,b-2:9098", "b-4:9098,b-2:9098,b-5:9098"])
def test_other_brokers_of_the_same_cluster_are_not_a_difference(
    aws: Served, settings: ConnectSettings, monkeypatch: pytest.MonkeyPatch, brokers: str
) -> None:
    found = connect(aws, settings)
    monkeypatch.setattr(FakeKafka, "servers", lambda _: "b-1:9098,b-2:9098,b-3:9098")
    found.put("shop", CONFIG)
    monkeypatch.setattr(FakeKafka, "servers", lambda _: brokers)
    assert found.put("shop", CONFIG) == "unchanged"
    monkeypatch.setattr(FakeKafka, "servers", lambda _: "other-1:9098")
    assert found.put("shop", CONFIG) == "updated"


def test_a_failed_connector_reports_the_cause_and_is_re_created(aws: Served, settings: ConnectSettings) -> None:
    found = connect(aws, settings)
    aws.worker.listeners.append(lambda name: aws.worker.fail(name, "no such host"))
    found.put("shop", CONFIG)
    with pytest.raises(ConnectorFailed, match=r"shop is FAILED: .*no such host.*/cdc-lake/connect"):
        found.wait_running("shop", timeout_seconds=5)
    aws.worker.listeners.clear()
    assert found.put("shop", CONFIG) == "updated"
    assert found.wait_running("shop", timeout_seconds=5).state == "RUNNING"


def test_a_failed_connector_cannot_be_restarted(aws: Served, settings: ConnectSettings) -> None:
    found = connect(aws, settings)
    aws.worker.listeners.append(lambda name: aws.worker.fail(name, "the database is down"))
    found.put("shop", CONFIG)
    status = found.status("shop")
    assert status is not None
    assert (status.state, found.can_restart(status), found.restart_failed("shop")) == ("FAILED", False, ())
    with pytest.raises(ClientError, match="The connector is FAILED"):
        aws.client().restart_connector(connectorArn=shop(aws)["connectorArn"])


def test_an_update_that_was_rolled_back_is_an_error(aws: Served, running: MskConnect) -> None:
    def fail_update(name: str) -> None:
        aws.worker.listeners.clear()
        aws.worker.fail(name, "no such host")

    aws.worker.listeners.append(fail_update)
    with pytest.raises(ConnectorFailed, match=r"update_connector ended as ROLLBACK_COMPLETE: .*no such.*still runs"):
        running.put("shop", {**CONFIG, "database.hostname": "nowhere"})
    assert running.get("shop") == aws.worker.get("shop") == CONFIG


def test_a_paused_connector_is_resumed(aws: Served, running: MskConnect) -> None:
    shop(aws)["connectorState"] = "PAUSED"
    assert running.put("shop", CONFIG) == "updated"
    assert running.wait_running("shop", timeout_seconds=5).state == "RUNNING"


def test_a_connector_is_deleted_with_or_without_its_offsets(aws: Served, settings: ConnectSettings) -> None:
    kafka = FakeKafka()
    kafka.make("offsets-shop")
    kafka.send("offsets-shop", b'{"lsn":7}', key=b'["shop",{"server":"shop"}]')
    running = connect(aws, settings, kafka)
    running.put("shop", CONFIG)
    running.ensure_stopped("shop", CONFIG)
    assert running.get("shop") is None
    assert (running.reports_offsets("shop"), running.offsets("shop")) == (True, ({"lsn": 7},))
    running.put("shop", CONFIG)
    assert running.delete("shop", offsets=False) is True
    assert running.offsets("shop") == ({"lsn": 7},)
    assert running.delete("shop") is True
    assert running.offsets("shop") == ()
    assert running.delete("shop") is False
    with pytest.raises(ConnectorMissing, match=r"connector shop: .*has no such connector"):
        running.wait_running("shop")


def test_a_connector_without_a_worker_configuration_is_rejected(aws: Served, settings: ConnectSettings) -> None:
    with pytest.raises(
        ConnectorConfigInvalid, match=r"connector other: it has no worker configuration.* shop, shop-two"
    ):
        connect(aws, settings).put("other", CONFIG)


def test_a_worker_configuration_without_an_offsets_topic_is_rejected(aws: Served, settings: ConnectSettings) -> None:
    without_offsets_topic = workers(aws, "bare", "key.converter=org.apache.kafka.connect.json.JsonConverter\n")
    with pytest.raises(ConnectorConfigInvalid, match=r"bare.* does not set offset\.storage\.topic"):
        connect(aws, settings, worker_configurations={"shop": without_offsets_topic}).offsets("shop")


def test_the_error_names_a_class_without_a_plugin(aws: Served, settings: ConnectSettings) -> None:
    with pytest.raises(ConnectorConfigInvalid, match=r"its class io\.lenses\.Sink\. .* has io\.debezium"):
        connect(aws, settings).put("shop", {"connector.class": "io.lenses.Sink"})


def test_a_plugin_that_does_not_exist_is_reported_with_the_error_of_aws(aws: Served, settings: ConnectSettings) -> None:
    arn = "arn:aws:kafkaconnect:us-east-1:123456789012:custom-plugin/x/1-2"
    without_plugin = connect(aws, settings, plugins=[Plugin(connector_class=KIND, arn=arn)])
    with pytest.raises(
        AwsRequestFailed, match=r"Cannot create the connector shop:.*NotFoundException.*custom-plugin/x"
    ):
        without_plugin.put("shop", CONFIG)


def test_waiting_ends_with_an_error_when_a_task_fails(aws: Served, running: MskConnect) -> None:
    aws.count_tasks("shop", running=0, failed=1)
    with pytest.raises(ConnectorFailed, match="task 0 FAILED: CloudWatch counts it in ErroredTaskCount"):
        running.wait_running("shop")


def test_a_failed_task_is_reported_by_its_metric_and_restarted(aws: Served, running: MskConnect) -> None:
    aws.count_tasks("shop", running=0, failed=1)
    status = running.status("shop")
    assert status is not None
    assert (status.state, status.is_running()) == ("RUNNING", False)
    assert "task 0 FAILED: CloudWatch counts it in ErroredTaskCount; the log group /cdc-lake/connect" in str(status)
    assert running.restart_failed("shop") == (0,)
    assert aws.worker.restarts == ["shop"]


def test_metrics_from_before_a_restart_are_ignored(aws: Served, running: MskConnect) -> None:
    now = datetime.now(UTC)
    shop(aws)["creationTime"] = now - timedelta(minutes=2)
    aws.count_tasks("shop", running=0, failed=1, at=now - timedelta(minutes=1))
    assert running.restart_failed("shop") == (0,)
    status = running.status("shop")
    assert status is not None
    assert status.tasks_known is False


def test_tasks_are_not_known_during_an_operation(aws: Served, running: MskConnect) -> None:
    aws.api.operations["arn:in-progress"] = {
        "connectorArn": shop(aws)["connectorArn"],
        "connectorOperationArn": "arn:in-progress",
        "connectorOperationState": "UPDATE_IN_PROGRESS",
        "connectorOperationType": "UPDATE_WORKER_SETTING",
    }
    aws.count_tasks("shop", running=0, failed=1)
    status = running.status("shop")
    assert status is not None
    assert status.tasks_known is False
    assert running.restart_failed("shop") == ()
    assert aws.worker.restarts == []
