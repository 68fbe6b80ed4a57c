"""The resource against MSK Connect's local API, over boto3: what it calls, and what it makes of the answers."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError

from cdc_lake_tests.fakes.kafka import FakeKafka
from cdc_lake_tests.fakes.kafkaconnect import Served, served
from resources.aws import AwsRequestFailed
from resources.connectors import ConnectorStatus
from resources.errors import ConnectorConfigInvalid, ConnectorFailed, ConnectorMissing
from resources.msk_connect import MskConnect
from resources.msk_connect_request import ConnectSettings, Plugin, WorkerConfiguration
from resources.waiting import until

KIND = "io.debezium.connector.postgresql.PostgresConnector"
CONFIG = {"connector.class": KIND, "tasks.max": "1"}


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[Served]:
    """The API."""
    with served(tmp_path) as found:
        yield found


def settings(aws: Served, **changes: object) -> ConnectSettings:
    """Where connectors run; the plugin is made if it is missing."""
    client = aws.client()
    listed = client.list_custom_plugins()["customPlugins"]
    if not listed:
        location = {"s3Location": {"bucketArn": "arn:aws:s3:::bucket", "fileKey": "debezium.zip"}}
        listed = [client.create_custom_plugin(name="debezium", contentType="ZIP", location=location)]
    found = ConnectSettings(
        subnets=["subnet-2", "subnet-1"],
        security_groups=["sg-1"],
        role_arn="arn:aws:iam::123456789012:role/connect",
        plugins=[Plugin(connector_class=KIND, arn=listed[0]["customPluginArn"])],
        worker_configurations={name: _workers(client, name) for name in ("shop", "shop-two")},
        log_group="/cdc-lake/connect",
        tags={"pipeline": "shop"},
    )
    return found.model_copy(update=changes)


def _workers(client: Any, name: str) -> WorkerConfiguration:  # noqa: ANN401 - boto3's
    listed = client.list_worker_configurations()["workerConfigurations"]
    found = next((each for each in listed if each["name"] == name), None)
    if found is None:
        content = base64.b64encode(f"offset.storage.topic=offsets-{name}".encode()).decode()
        found = client.create_worker_configuration(name=name, propertiesFileContent=content)
    return WorkerConfiguration(arn=found["workerConfigurationArn"])


def connect(aws: Served, kafka: FakeKafka | None = None, **changes: object) -> MskConnect:
    """The resource."""
    return MskConnect(
        kafka=kafka or FakeKafka(),
        endpoint_url=aws.url,
        access_key="key",
        secret_key="secret",
        attempts=1,
        settings=settings(aws, **changes),
        poll_seconds=0.01,
        change_seconds=5,
    )


def test_it_is_made_once_and_without_a_difference_nothing_is_called(aws: Served) -> None:
    one = connect(aws)
    assert one.status("shop") is None
    assert one.get("shop") is None
    assert one.put("shop", CONFIG) == "created"
    assert one.wait_running("shop").state == "RUNNING"
    assert str(one.status("shop")) in {"shop is RUNNING", "shop is RUNNING, task 0 RUNNING"}
    asked = list(aws.worker.asked)
    assert one.put("shop", CONFIG) == "unchanged"
    assert one.get("shop") == CONFIG
    assert aws.worker.asked == asked == ["put shop"]


def test_a_prefix_is_no_name(aws: Served) -> None:
    one = connect(aws)
    one.put("shop-two", CONFIG)
    assert one.status("shop") is None
    assert one.put("shop", CONFIG) == "created"


def test_configuration_and_workers_are_updated_in_place(aws: Served) -> None:
    connect(aws).put("shop", CONFIG)
    larger = connect(aws, mcu_count=2)
    arn = aws.client().list_connectors()["connectors"][0]["connectorArn"]
    assert larger.put("shop", {**CONFIG, "poll.interval.ms": "50"}) == "updated"
    found = aws.client().describe_connector(connectorArn=arn)
    assert found["connectorConfiguration"]["poll.interval.ms"] == "50"
    assert found["capacity"]["provisionedCapacity"]["mcuCount"] == 2
    assert larger.put("shop", {**CONFIG, "poll.interval.ms": "50"}) == "unchanged"


def test_tags_are_added_and_changed_and_others_are_left_alone(aws: Served) -> None:
    connect(aws).put("shop", CONFIG)
    client = aws.client()
    arn = client.list_connectors()["connectors"][0]["connectorArn"]
    client.tag_resource(resourceArn=arn, tags={"cost-centre": "7"})
    assert connect(aws, tags={}).put("shop", CONFIG) == "unchanged"
    other = connect(aws, tags={"pipeline": "shop", "owner": "data"})
    assert other.put("shop", CONFIG) == "updated"
    assert other.put("shop", CONFIG) == "unchanged"
    found = client.list_tags_for_resource(resourceArn=arn)["tags"]
    assert found == {"pipeline": "shop", "owner": "data", "cost-centre": "7"}
    assert aws.worker.asked == ["put shop"], "a tag is no reason to touch what runs"


@pytest.mark.parametrize("changes", [{"log_group": "/other"}, {"role_arn": "arn:aws:iam::123456789012:role/other"}])
def test_what_can_t_be_changed_is_made_anew_under_its_name(aws: Served, changes: dict[str, object]) -> None:
    connect(aws).put("shop", CONFIG)
    before = aws.client().list_connectors()["connectors"][0]["connectorArn"]
    assert connect(aws, **changes).put("shop", CONFIG) == "updated"
    (after,) = aws.client().list_connectors()["connectors"]
    assert (after["connectorName"], after["connectorArn"] != before) == ("shop", True)
    assert aws.worker.asked == ["put shop", "delete shop", "put shop"]


def test_the_order_of_subnets_is_no_difference(aws: Served) -> None:
    connect(aws).put("shop", CONFIG)
    assert connect(aws, subnets=["subnet-1", "subnet-2"]).put("shop", CONFIG) == "unchanged"


@pytest.mark.parametrize("told", ["b-3:9098,b-1:9098,b-2:9098", "b-4:9098,b-2:9098,b-5:9098"])
def test_other_brokers_of_the_same_cluster_are_no_difference(
    aws: Served, monkeypatch: pytest.MonkeyPatch, told: str
) -> None:
    one = connect(aws)
    monkeypatch.setattr(FakeKafka, "servers", lambda _: "b-1:9098,b-2:9098,b-3:9098")
    one.put("shop", CONFIG)
    monkeypatch.setattr(FakeKafka, "servers", lambda _: told)
    assert one.put("shop", CONFIG) == "unchanged"
    monkeypatch.setattr(FakeKafka, "servers", lambda _: "other-1:9098")
    assert one.put("shop", CONFIG) == "updated"


def test_a_task_that_failed_ends_a_wait(aws: Served) -> None:
    one = connect(aws)
    one.put("shop", CONFIG)
    one.wait_running("shop")
    aws.worker.failed.add("shop")
    told(one, is_running=False)
    with pytest.raises(ConnectorFailed, match="task 0 FAILED: CloudWatch counts it in ErroredTaskCount"):
        one.wait_running("shop")


def test_one_that_failed_says_why_and_is_made_anew(aws: Served) -> None:
    one = connect(aws)
    one.put("shop", {**CONFIG, "fail": "org.postgresql.util.PSQLException: no such host"})
    with pytest.raises(ConnectorFailed, match=r"shop is FAILED: .*no such host.*/cdc-lake/connect"):
        one.wait_running("shop", timeout_seconds=5)
    assert one.put("shop", CONFIG) == "updated"
    assert one.wait_running("shop", timeout_seconds=5).state == "RUNNING"


def test_one_that_failed_can_not_be_restarted(aws: Served) -> None:
    one = connect(aws)
    one.put("shop", {**CONFIG, "fail": "the database was away"})
    with pytest.raises(ConnectorFailed):
        one.wait_running("shop", timeout_seconds=5)
    status = one.status("shop")
    assert status is not None
    assert not one.can_restart(status)
    assert one.restart_failed("shop") == ()
    arn = aws.client().list_connectors()["connectors"][0]["connectorArn"]
    with pytest.raises(ClientError, match="The connector is FAILED"):
        aws.client().restart_connector(connectorArn=arn)


def test_an_update_that_was_rolled_back_is_an_error(aws: Served) -> None:
    one = connect(aws)
    one.put("shop", CONFIG)
    with pytest.raises(ConnectorFailed, match=r"update_connector ended with ROLLBACK_COMPLETE: no.*still runs"):
        one.put("shop", {**CONFIG, "fail": "no"})
    assert one.get("shop") == CONFIG


def test_a_paused_one_is_resumed(aws: Served) -> None:
    one = connect(aws)
    one.put("shop", CONFIG)
    one.wait_running("shop")
    aws.client().pause_connector(connectorArn=aws.client().list_connectors()["connectors"][0]["connectorArn"])
    assert one.put("shop", CONFIG) == "updated"
    assert one.wait_running("shop", timeout_seconds=5).state == "RUNNING"


def test_it_is_deleted_with_its_offsets_or_without(aws: Served) -> None:
    kafka = FakeKafka()
    kafka.make("offsets-shop")
    kafka.send("offsets-shop", b'{"lsn":7}', key=b'["shop",{"server":"shop"}]')
    one = connect(aws, kafka)
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


def test_without_a_worker_configuration_its_offsets_would_be_nowhere(aws: Served) -> None:
    with pytest.raises(ConnectorConfigInvalid, match=r"other has no worker configuration.* shop, shop-two"):
        connect(aws).put("other", CONFIG)


def test_a_worker_configuration_without_a_topic_of_offsets_is_refused(aws: Served) -> None:
    content = base64.b64encode(b"key.converter=org.apache.kafka.connect.json.JsonConverter\n").decode()
    made = aws.client().create_worker_configuration(name="bare", propertiesFileContent=content)
    bare = WorkerConfiguration(arn=made["workerConfigurationArn"])
    with pytest.raises(ConnectorConfigInvalid, match=r"bare.* names no offset\.storage\.topic"):
        connect(aws, worker_configurations={"shop": bare}).offsets("shop")


def test_a_class_without_a_plugin_is_named(aws: Served) -> None:
    with pytest.raises(ConnectorConfigInvalid, match=r"asks for class io\.lenses\.Sink, .* plugins for io\.debezium"):
        connect(aws).put("shop", {"connector.class": "io.lenses.Sink"})


def test_a_plugin_that_is_gone_is_aws_s_own_error(aws: Served) -> None:
    arn = "arn:aws:kafkaconnect:us-east-1:123456789012:custom-plugin/x/1-2"
    gone = connect(aws, plugins=[Plugin(connector_class=KIND, arn=arn)])
    with pytest.raises(
        AwsRequestFailed, match=r"Making the connector shop failed .*NotFoundException.*custom-plugin/x"
    ):
        gone.put("shop", CONFIG)


def told(one: MskConnect, is_running: bool) -> ConnectorStatus:
    """The connector's status, once its tasks are told to be so: a metric is of a whole second, or later."""
    status = until(
        lambda: one.status("shop"),
        lambda found: found is not None and found.tasks_told and found.is_running() == is_running,
        seconds=5,
        what="the metrics to tell the tasks",
        pause_seconds=0.05,
    )
    assert status is not None
    return status


def test_a_task_that_failed_is_told_by_its_metric_and_restarted(aws: Served) -> None:
    one = connect(aws)
    one.put("shop", CONFIG)
    one.wait_running("shop")
    aws.worker.failed.add("shop")
    status = told(one, is_running=False)
    assert status.state == "RUNNING"
    assert "task 0 FAILED: CloudWatch counts it in ErroredTaskCount; the log group /cdc-lake/connect" in str(status)
    assert one.restart_failed("shop") == (0,)
    assert aws.worker.asked[-1] == "restart?includeTasks=true&onlyFailed=true shop"
    assert str(told(one, is_running=True)) == "shop is RUNNING, task 0 RUNNING"
    assert one.restart_failed("shop") == ()


def test_what_was_counted_before_a_restart_says_nothing_of_it(aws: Served) -> None:
    one = connect(aws)
    one.put("shop", CONFIG)
    one.wait_running("shop")
    aws.worker.failed.add("shop")
    told(one, is_running=False)
    one.restart_failed("shop")
    aws.client().describe_connector(connectorArn=aws.client().list_connectors()["connectors"][0]["connectorArn"])
    aws.worker.down = True  # nothing is counted from here on
    status = one.status("shop")
    assert status is not None
    assert (status.tasks_told, status.is_running()) == (False, True)
