"""Connectors on MSK Connect: what is created, changed in place, re-created and deleted, and what a status contains."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cdc_lake_tests.aws_api.kafkaconnect.in_memory import Served, served
from cdc_lake_tests.fakes.kafka import FakeKafka
from resources.aws.client import AwsRequestFailed
from resources.errors import ConnectorConfigInvalid, ConnectorFailed, ConnectorMissing
from resources.msk_connect.connector_request import ConnectSettings, Plugin, WorkerConfiguration
from resources.msk_connect.resource import MskConnect

KIND = "io.debezium.connector.postgresql.PostgresConnector"
CONFIG = {"connector.class": KIND, "tasks.max": "1"}


@pytest.fixture
def aws() -> Iterator[Served]:
    """The API."""
    with served() as found:
        yield found


@pytest.fixture
def settings(aws: Served) -> ConnectSettings:
    """Where connectors run, with a plugin, and worker configurations for two connectors."""
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
    """A new worker configuration."""
    return WorkerConfiguration(arn=aws.api.plugins.add_worker_configuration(name, properties))


def connect(aws: Served, settings: ConnectSettings, kafka: FakeKafka | None = None, **changes: object) -> MskConnect:
    """The resource; `changes` are of the settings."""
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
def one(aws: Served, settings: ConnectSettings) -> MskConnect:
    """The resource, with a running connector."""
    found = connect(aws, settings)
    assert found.put("shop", CONFIG) == "created"
    assert found.wait_running("shop").state == "RUNNING"
    return found


def shop(aws: Served) -> dict[str, Any]:
    """The only connector, as the API has it."""
    [found] = aws.api.connectors.values()
    return found


def puts(aws: Served) -> list[str]:
    """A list of the connectors that are put on the worker from now on."""
    found: list[str] = []
    aws.worker.listeners.append(found.append)
    return found


def test_it_is_created_once_and_without_a_difference_nothing_is_called(aws: Served, settings: ConnectSettings) -> None:
    found, put = connect(aws, settings), puts(aws)
    assert (found.status("shop"), found.get("shop")) == (None, None)
    assert found.put("shop", CONFIG) == "created"
    assert str(found.wait_running("shop")) == "shop is RUNNING"
    assert found.put("shop", CONFIG) == "unchanged"
    assert (found.get("shop"), put) == (CONFIG, ["shop"])


def test_a_connector_whose_name_begins_alike_is_another_one(aws: Served, settings: ConnectSettings) -> None:
    found = connect(aws, settings)
    found.put("shop-two", CONFIG)
    assert found.status("shop") is None
    assert found.put("shop", CONFIG) == "created"


def test_configuration_and_workers_are_updated_in_place(
    aws: Served, settings: ConnectSettings, one: MskConnect
) -> None:
    arn, config = shop(aws)["connectorArn"], {**CONFIG, "poll.interval.ms": "50"}
    larger = connect(aws, settings, mcu_count=2)
    assert larger.put("shop", config) == "updated"
    assert shop(aws)["connectorArn"] == arn
    assert aws.worker.get("shop") == one.get("shop") == config
    assert shop(aws)["capacity"]["provisionedCapacity"]["mcuCount"] == 2
    assert larger.put("shop", config) == "unchanged"


@pytest.mark.usefixtures("one")
def test_tags_are_added_and_changed_and_others_stay(aws: Served, settings: ConnectSettings) -> None:
    shop(aws)["tags"]["cost-centre"] = "7"
    put = puts(aws)
    assert connect(aws, settings, tags={}).put("shop", CONFIG) == "unchanged"
    other = connect(aws, settings, tags={"pipeline": "shop", "owner": "data"})
    assert other.put("shop", CONFIG) == "updated"
    assert other.put("shop", CONFIG) == "unchanged"
    assert shop(aws)["tags"] == {"pipeline": "shop", "owner": "data", "cost-centre": "7"}
    assert put == [], "a tag does not change the connector"


@pytest.mark.usefixtures("one")
@pytest.mark.parametrize("changes", [{"log_group": "/other"}, {"role_arn": "arn:aws:iam::123456789012:role/other"}])
def test_what_cannot_be_changed_is_re_created_with_the_same_name(
    aws: Served, settings: ConnectSettings, changes: dict[str, object]
) -> None:
    before = shop(aws)["connectorArn"]
    assert connect(aws, settings, **changes).put("shop", CONFIG) == "updated"
    assert (shop(aws)["connectorName"], shop(aws)["connectorArn"] != before) == ("shop", True)
    assert aws.worker.get("shop") == CONFIG


@pytest.mark.usefixtures("one")
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


def test_an_update_that_was_rolled_back_is_an_error(aws: Served, one: MskConnect) -> None:
    def refuse(name: str) -> None:
        aws.worker.listeners.clear()
        aws.worker.fail(name, "no such host")

    aws.worker.listeners.append(refuse)
    with pytest.raises(ConnectorFailed, match=r"update_connector ended with ROLLBACK_COMPLETE: .*no such.*still runs"):
        one.put("shop", {**CONFIG, "database.hostname": "nowhere"})
    assert one.get("shop") == aws.worker.get("shop") == CONFIG


def test_a_paused_connector_is_resumed(aws: Served, one: MskConnect) -> None:
    shop(aws)["connectorState"] = "PAUSED"
    assert one.put("shop", CONFIG) == "updated"
    assert one.wait_running("shop", timeout_seconds=5).state == "RUNNING"


def test_it_is_deleted_with_its_offsets_or_without(aws: Served, settings: ConnectSettings) -> None:
    kafka = FakeKafka()
    kafka.make("offsets-shop")
    kafka.send("offsets-shop", b'{"lsn":7}', key=b'["shop",{"server":"shop"}]')
    one = connect(aws, settings, kafka)
    one.put("shop", CONFIG)
    one.halt("shop", CONFIG)
    assert one.get("shop") is None
    assert (one.tells_offsets("shop"), one.offsets("shop")) == (True, ({"lsn": 7},))
    one.put("shop", CONFIG)
    assert one.delete("shop", offsets=False) is True
    assert one.offsets("shop") == ({"lsn": 7},)
    assert one.delete("shop") is True
    assert one.offsets("shop") == ()
    assert one.delete("shop") is False
    with pytest.raises(ConnectorMissing, match="no connector shop"):
        one.wait_running("shop")


def test_a_connector_without_a_worker_configuration_is_refused(aws: Served, settings: ConnectSettings) -> None:
    with pytest.raises(ConnectorConfigInvalid, match=r"other has no worker configuration.* shop, shop-two"):
        connect(aws, settings).put("other", CONFIG)


def test_a_worker_configuration_without_an_offsets_topic_is_refused(aws: Served, settings: ConnectSettings) -> None:
    bare = workers(aws, "bare", "key.converter=org.apache.kafka.connect.json.JsonConverter\n")
    with pytest.raises(ConnectorConfigInvalid, match=r"bare.* names no offset\.storage\.topic"):
        connect(aws, settings, worker_configurations={"shop": bare}).offsets("shop")


def test_a_class_without_a_plugin_is_named(aws: Served, settings: ConnectSettings) -> None:
    with pytest.raises(ConnectorConfigInvalid, match=r"asks for class io\.lenses\.Sink, .* plugins for io\.debezium"):
        connect(aws, settings).put("shop", {"connector.class": "io.lenses.Sink"})


def test_a_plugin_that_does_not_exist_is_an_error_of_aws(aws: Served, settings: ConnectSettings) -> None:
    arn = "arn:aws:kafkaconnect:us-east-1:123456789012:custom-plugin/x/1-2"
    gone = connect(aws, settings, plugins=[Plugin(connector_class=KIND, arn=arn)])
    with pytest.raises(
        AwsRequestFailed, match=r"Making the connector shop failed .*NotFoundException.*custom-plugin/x"
    ):
        gone.put("shop", CONFIG)


def test_a_failed_task_ends_a_wait(aws: Served, one: MskConnect) -> None:
    aws.count_tasks("shop", running=0, failed=1)
    with pytest.raises(ConnectorFailed, match="task 0 FAILED: CloudWatch counts it in ErroredTaskCount"):
        one.wait_running("shop")


def test_a_failed_task_is_reported_by_its_metric_and_restarted(aws: Served, one: MskConnect) -> None:
    aws.count_tasks("shop", running=0, failed=1)
    status = one.status("shop")
    assert status is not None
    assert (status.state, status.is_running()) == ("RUNNING", False)
    assert "task 0 FAILED: CloudWatch counts it in ErroredTaskCount; the log group /cdc-lake/connect" in str(status)
    assert one.restart_failed("shop") == (0,)
    assert aws.worker.restarts == ["shop"]


def test_metrics_from_before_a_restart_are_ignored(aws: Served, one: MskConnect) -> None:
    now = datetime.now(UTC)
    shop(aws)["creationTime"] = now - timedelta(minutes=2)
    aws.count_tasks("shop", running=0, failed=1, at=now - timedelta(minutes=1))
    assert one.restart_failed("shop") == (0,)
    status = one.status("shop")
    assert status is not None
    assert status.tasks_told is False
