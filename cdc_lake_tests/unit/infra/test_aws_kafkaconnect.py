"""MSK Connect's API over a worker in memory, asked by boto3, whose models check what is sent and read what comes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import ClientError, ParamValidationError

from cdc_lake_tests.fakes.kafkaconnect import Served, served

CLUSTER = {"bootstrapServers": "b-1:9098", "vpc": {"subnets": ["subnet-1"], "securityGroups": ["sg-1"]}}


@pytest.fixture
def aws(tmp_path: Path) -> Iterator[Served]:
    """The API."""
    with served(tmp_path) as found:
        yield found


def plugin(aws: Served, key: str = "plugins/debezium.zip", name: str = "debezium") -> str:
    """Make a plugin; its ARN."""
    location = {"s3Location": {"bucketArn": "arn:aws:s3:::bucket", "fileKey": key}}
    made = aws.client().create_custom_plugin(name=name, contentType="ZIP", location=location)
    return str(made["customPluginArn"])


def connector(aws: Served, plugin_arn: str, name: str = "shop", **config: str) -> str:
    """Make a connector; its ARN."""
    made = aws.client().create_connector(
        connectorName=name,
        connectorConfiguration={"connector.class": "Debezium", "tasks.max": "1", **config},
        capacity={"provisionedCapacity": {"mcuCount": 1, "workerCount": 1}},
        kafkaCluster={"apacheKafkaCluster": CLUSTER},
        kafkaClusterClientAuthentication={"authenticationType": "IAM"},
        kafkaClusterEncryptionInTransit={"encryptionType": "TLS"},
        kafkaConnectVersion="3.7.x",
        plugins=[{"customPlugin": {"customPluginArn": plugin_arn, "revision": 1}}],
        serviceExecutionRoleArn="arn:aws:iam::123456789012:role/connect",
    )
    assert made["connectorState"] == "CREATING"
    return str(made["connectorArn"])


def code(caught: pytest.ExceptionInfo[ClientError]) -> str:
    """AWS's code of an error."""
    return str(caught.value.response["Error"]["Code"])


def described(aws: Served, arn: str) -> dict[str, Any]:
    """What DescribeConnector says."""
    return dict(aws.client().describe_connector(connectorArn=arn))


def operation(aws: Served, arn: str) -> tuple[str, str]:
    """State of an operation, and why."""
    found = aws.client().describe_connector_operation(connectorOperationArn=arn)
    return found["connectorOperationState"], found.get("errorInfo", {}).get("message", "")


def test_a_connector_runs_and_is_told_as_it_was_asked_for(aws: Served) -> None:
    arn = connector(aws, plugin(aws))
    found = described(aws, arn)
    assert (found["connectorName"], found["connectorState"]) == ("shop", "RUNNING")
    assert found["kafkaCluster"]["apacheKafkaCluster"] == CLUSTER
    assert aws.worker.configs["shop"] == {"connector.class": "Debezium", "tasks.max": "1", "name": "shop"}
    listed = aws.client().list_connectors(connectorNamePrefix="sh")["connectors"]
    assert [(each["connectorArn"], each["connectorState"]) for each in listed] == [(arn, "RUNNING")]
    assert aws.client().list_connectors(connectorNamePrefix="x")["connectors"] == []


def test_tags_are_told_added_and_taken(aws: Served) -> None:
    arn, client = connector(aws, plugin(aws)), aws.client()
    client.tag_resource(resourceArn=arn, tags={"a": "1", "b": "2"})
    client.untag_resource(resourceArn=arn, tagKeys=["a"])
    assert client.list_tags_for_resource(resourceArn=arn)["tags"] == {"b": "2"}
    with pytest.raises(ClientError) as caught:
        client.list_tags_for_resource(resourceArn=f"{arn}-gone")
    assert code(caught) == "NotFoundException"


def test_a_second_one_of_a_name_is_a_conflict(aws: Served) -> None:
    arn = plugin(aws)
    connector(aws, arn)
    with pytest.raises(ClientError) as caught:
        connector(aws, arn)
    assert code(caught) == "ConflictException"


def test_one_that_the_worker_was_not_there_for_can_be_made_again(aws: Served) -> None:
    arn = plugin(aws)
    aws.worker.down = True
    for _ in range(2):  # as boto3 does by itself
        with pytest.raises(ClientError, match="does not answer") as caught:
            connector(aws, arn)
        assert code(caught) == "ServiceUnavailableException"
    aws.worker.down = False
    assert described(aws, connector(aws, arn))["connectorState"] == "RUNNING"


@pytest.mark.parametrize("config", [{"fail": "Caused by: no such host"}, {"refuse": "no such host"}])
def test_one_that_can_t_run_is_failed_with_its_cause(aws: Served, config: dict[str, str]) -> None:
    found = described(aws, connector(aws, plugin(aws), **config))
    assert found["connectorState"] == "FAILED"
    assert "no such host" in found["stateDescription"]["message"]


def test_an_update_is_an_operation_and_changes_the_version(aws: Served) -> None:
    arn = connector(aws, plugin(aws))
    before = described(aws, arn)
    asked = {"connectorArn": arn, "currentVersion": before["currentVersion"]}
    config = {"connector.class": "Debezium", "tasks.max": "1", "poll.interval.ms": "50"}
    begun = aws.client().update_connector(**asked, connectorConfiguration=config)
    assert begun["connectorState"] == "UPDATING"
    assert operation(aws, begun["connectorOperationArn"]) == ("UPDATE_COMPLETE", "")
    after = described(aws, arn)
    assert (after["connectorState"], after["connectorConfiguration"]) == ("RUNNING", config)
    assert after["currentVersion"] != before["currentVersion"]
    with pytest.raises(ClientError, match="current version is"):
        aws.client().update_connector(**asked, connectorConfiguration=config)


def test_an_update_that_fails_is_rolled_back(aws: Served) -> None:
    arn = connector(aws, plugin(aws))
    before = described(aws, arn)
    begun = aws.client().update_connector(
        connectorArn=arn,
        currentVersion=before["currentVersion"],
        connectorConfiguration={"connector.class": "Debezium", "fail": "no"},
    )
    assert operation(aws, begun["connectorOperationArn"]) == ("ROLLBACK_COMPLETE", "no")
    after = described(aws, arn)
    assert (after["connectorState"], after["connectorConfiguration"]) == ("RUNNING", before["connectorConfiguration"])
    assert "fail" not in aws.worker.configs["shop"]


def test_configuration_and_worker_are_not_updated_together(aws: Served) -> None:
    arn = connector(aws, plugin(aws))
    with pytest.raises(ClientError, match="not both"):
        aws.client().update_connector(
            connectorArn=arn,
            currentVersion=described(aws, arn)["currentVersion"],
            connectorConfiguration={"connector.class": "Debezium"},
            capacity={"provisionedCapacity": {"mcuCount": 2, "workerCount": 1}},
        )


def test_pause_resume_restart_and_delete(aws: Served) -> None:
    arn = connector(aws, plugin(aws))
    described(aws, arn)
    aws.client().pause_connector(connectorArn=arn)
    assert described(aws, arn)["connectorState"] == "PAUSED"
    begun = aws.client().resume_connector(connectorArn=arn)
    assert operation(aws, begun["connectorOperationArn"]) == ("RESUME_COMPLETE", "")
    aws.client().restart_connector(connectorArn=arn, onlyFailedTasks=True)
    assert described(aws, arn)["connectorState"] == "RUNNING"
    assert aws.client().delete_connector(connectorArn=arn)["connectorState"] == "DELETING"
    with pytest.raises(ClientError) as caught:
        described(aws, arn)
    assert code(caught) == "NotFoundException"
    assert aws.worker.configs == {}


def test_a_plugin_that_is_no_archive_is_told_and_can_t_be_used(aws: Served) -> None:
    arn = plugin(aws, "notes.txt")
    found = aws.client().describe_custom_plugin(customPluginArn=arn)
    assert found["customPluginState"] == "CREATE_FAILED"
    assert found["stateDescription"]["message"] == "it is no ZIP file"
    with pytest.raises(ClientError, match="CREATE_FAILED"):
        connector(aws, arn)
    listed = aws.client().list_custom_plugins(namePrefix="deb")["customPlugins"]
    assert [each["customPluginArn"] for each in listed] == [arn]


def test_a_plugin_in_use_stays(aws: Served) -> None:
    arn = plugin(aws)
    connector(aws, arn)
    with pytest.raises(ClientError, match="used by connector shop"):
        aws.client().delete_custom_plugin(customPluginArn=arn)


def test_worker_configurations(aws: Served) -> None:
    made = aws.client().create_worker_configuration(name="shop", propertiesFileContent="b2Zmc2V0cw==")
    arn = made["workerConfigurationArn"]
    found = aws.client().describe_worker_configuration(workerConfigurationArn=arn)
    assert found["latestRevision"]["propertiesFileContent"] == "b2Zmc2V0cw=="
    assert aws.client().list_worker_configurations()["workerConfigurations"][0]["name"] == "shop"


def test_all_of_it_is_there_after_a_restart(tmp_path: Path) -> None:
    with served(tmp_path) as first:
        arn = connector(first, plugin(first))
        described(first, arn)
    with served(tmp_path) as again:
        assert described(again, arn)["connectorState"] == "RUNNING"


def test_what_is_wrong_or_not_offered_is_said(aws: Served) -> None:
    with pytest.raises(ParamValidationError):
        aws.client().create_connector(connectorName="shop")
    with pytest.raises(ClientError) as caught:
        aws.client().delete_worker_configuration(workerConfigurationArn="arn")
    assert "not offered by the local AWS endpoint" in str(caught.value)


def test_operations_are_listed_newest_first(aws: Served) -> None:
    client = aws.client()
    made = connector(aws, plugin(aws))
    assert client.list_connector_operations(connectorArn=made)["connectorOperations"] == []
    client.pause_connector(connectorArn=made)
    client.describe_connector(connectorArn=made)
    client.resume_connector(connectorArn=made)
    resumed, paused = client.list_connector_operations(connectorArn=made)["connectorOperations"]
    assert (paused["connectorOperationType"], resumed["connectorOperationType"]) == (
        "PAUSE_CONNECTOR",
        "RESUME_CONNECTOR",
    )
    assert paused["creationTime"] <= paused["endTime"]
