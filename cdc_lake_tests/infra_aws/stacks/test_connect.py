"""MSK Connect's worker configurations and role."""

from __future__ import annotations

from cdc_lake.pipeline.loading import load
from cdc_lake_tests.infra_aws.conftest import Synthesized
from cdc_lake_tests.infra_aws.iam.statements import statements
from infra.aws.sizes.sizes import size
from infra.aws.stacks.connect import connector_name, offsets_topic, worker_properties


def properties(environment: Synthesized) -> dict[str, dict[str, str]]:
    """Return the properties of the worker configurations by name."""
    return {
        each["Name"]: dict(line.split("=", 1) for line in each["PropertiesFileContent"]["Fn::Base64"].splitlines())
        for each in environment.of("connect", "AWS::KafkaConnect::WorkerConfiguration").values()
    }


def test_secrets_are_read_by_a_config_provider(environment: Synthesized) -> None:
    [found] = properties(environment).values()
    assert found["config.providers"] == "secretsmanager"
    assert found["config.providers.secretsmanager.class"].endswith(".SecretsManagerConfigProvider")
    assert found["config.providers.secretsmanager.param.region"] == environment.size.region


def test_offsets_are_flushed_every_five_seconds(opposite_of_dev: Synthesized) -> None:
    """MSK Connect has no exactly-once, so watermarks wait for a stored offset."""
    assert {each["offset.flush.interval.ms"] for each in properties(opposite_of_dev).values()} == {"5000"}


def test_each_connector_has_its_own_offsets_topic(opposite_of_dev: Synthesized) -> None:
    found = properties(opposite_of_dev)
    topics = [each["offset.storage.topic"] for each in found.values()]
    assert sorted(topics) == [offsets_topic("northwind"), offsets_topic("pagila_query")]
    assert all("_" not in name for name in found), "MSK Connect refuses underscores in names"


def test_the_name_changes_with_the_content(environment: Synthesized, opposite_of_dev: Synthesized) -> None:
    digests = {name.rpartition("-")[2] for each in (environment, opposite_of_dev) for name in properties(each)}
    assert len(digests) == 2
    assert worker_properties("a", "us-east-1") != worker_properties("a", "eu-west-1")


def test_names_equal_those_of_the_pipeline() -> None:
    pipeline = load("northwind")
    assert size("dev").pipelines == (pipeline.name,)
    assert connector_name(pipeline.name) == pipeline.connector
    assert size("dev").topic_prefixes == (pipeline.spec.stream.prefix,)


def test_stacks_create_no_plugins_and_connectors(environment: Synthesized) -> None:
    kinds = {kind for _, kind, _ in environment.resources()}
    assert kinds & {"AWS::KafkaConnect::Connector", "AWS::KafkaConnect::CustomPlugin"} == set()


def test_only_our_connectors_assume_the_role_that_reads_the_secret(environment: Synthesized) -> None:
    [role] = [r for _, r in environment.of("connect", "AWS::IAM::Role").items()]
    [trust] = role["AssumeRolePolicyDocument"]["Statement"]
    assert "connector/cdc-lake-*" in str(trust["Condition"]["ArnLike"]["aws:SourceArn"])
    assert trust["Condition"]["StringEquals"] == {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}
    secrets = [
        resource
        for each in statements(environment)
        if each.where.startswith("connect/") and "secretsmanager:GetSecretValue" in each.actions
        for resource in each.resources
    ]
    assert len(secrets) == 1


def test_connect_may_write_the_pipelines_topics_and_its_own(opposite_of_dev: Synthesized) -> None:
    [topics] = [
        each.resources
        for each in statements(opposite_of_dev)
        if each.where.startswith("connect/") and "kafka-cluster:WriteData" in each.actions
    ]
    assert {topic.rpartition("/")[2] for topic in topics} == {
        "msk.*",
        "pagila.*",
        "__debezium-heartbeat.msk",
        "__debezium-heartbeat.pagila",
        "__amazon_msk_connect_*",
        offsets_topic("northwind"),
        offsets_topic("pagila_query"),
    }
