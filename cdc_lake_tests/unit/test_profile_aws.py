"""The aws profile from its environment variables: the same resources as locally, and every fault by name."""

from __future__ import annotations

from pathlib import Path

import pytest

from cdc_lake import profile, profile_local
from cdc_lake.aws_settings import AwsSettings
from cdc_lake.pipeline.automation.health_sensor import EVERY_SECONDS
from cdc_lake_tests.fakes.account import ACCOUNT, ENVIRONMENT, bind
from infra.local.artifacts.artifacts import folder_of
from infra.local.errors import ArtifactsMissing
from resources.aws.metrics import CloudWatchMetrics, NoMetrics
from resources.connect.connector_interface import Connectors
from resources.connect.kafka_connect import KafkaConnect
from resources.errors import ResourceError
from resources.kafka.resource import Kafka
from resources.msk_connect.resource import MskConnect
from resources.spark.emr import EmrSteps
from resources.spark.emr_serverless import EmrServerlessSpark
from resources.spark.job_interface import SparkJobs


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The profile's variables, and its jars."""
    bind(monkeypatch, tmp_path)


def test_it_has_what_the_local_one_has() -> None:
    found = profile.resources()
    assert found.keys() == profile_local.resources().keys()
    assert isinstance(found["spark"], SparkJobs)
    assert isinstance(found["connect"], MskConnect)
    connect: Connectors = found["connect"]  # which a type checker looks at
    assert connect is not None


def test_the_variables_are_where_they_belong() -> None:
    found = profile.resources()
    settings = found["connect"].settings
    assert settings.subnets == ["subnet-1", "subnet-2"]
    assert (settings.plugins[0].arn, settings.plugins[0].revision) == (
        ENVIRONMENT["CDC_LAKE_CONNECT_PLUGIN"].removesuffix("@2"),
        2,
    )
    assert settings.worker_configurations["cdc-lake-northwind"].arn == ENVIRONMENT["CDC_LAKE_CONNECT_WORKER_NORTHWIND"]
    assert found["dashboards"].quicksight.account_id == ACCOUNT
    assert found["postgres"].secret.secret_id == ENVIRONMENT["CDC_LAKE_SOURCE_SECRET"]
    assert found["deployment"].password_reference.startswith("${secretsmanager:")
    assert isinstance(found["kafka"], Kafka)
    assert found["kafka"].security == "iam"
    spark = found["spark"]
    assert isinstance(spark, EmrServerlessSpark)
    assert spark.settings["spark.cdc_lake.kafka.security.protocol"] == "SASL_SSL"
    assert spark.log_uri == "s3://work/emr-logs/"


def test_a_queue_is_there_where_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "queue" not in profile.resources()
    monkeypatch.setenv("CDC_LAKE_EVENTS_QUEUE", "https://sqs.eu-central-1.amazonaws.com/123456789012/raw")
    assert profile.resources()["queue"].queue_url.endswith("/raw")


def test_metrics_are_told_where_the_environment_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(profile.resources()["metrics"], NoMetrics)
    monkeypatch.setenv("CDC_LAKE_ENVIRONMENT", "small")
    found = profile.resources()["metrics"]
    assert isinstance(found, CloudWatchMetrics)
    assert (found.environment, found.region) == ("small", "eu-central-1")
    assert found.attempts * (found.connect_timeout_seconds + found.read_timeout_seconds) < EVERY_SECONDS


def test_a_cluster_is_taken_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_LAKE_EMR_CLUSTER", "j-1")
    assert isinstance(profile.resources()["spark"], EmrSteps)


def test_connectors_can_scale_and_have_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    found = profile.resources()["connect"].settings
    assert (found.max_workers, found.tags) == (None, {})
    monkeypatch.setenv("CDC_LAKE_CONNECT_MAX_WORKERS", "4")
    monkeypatch.setenv("CDC_LAKE_CONNECT_TAGS", "team=lake, cost-center=7")
    found = profile.resources()["connect"].settings
    assert (found.max_workers, found.tags) == (4, {"team": "lake", "cost-center": "7"})


def test_a_connect_of_ones_own_takes_msk_connects_place(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROLE", "LOG_GROUP", "SUBNETS", "GROUPS", "PLUGIN", "WORKER_NORTHWIND"):
        monkeypatch.delenv(f"CDC_LAKE_CONNECT_{name}")
    with pytest.raises(ResourceError, match="CDC_LAKE_CONNECT_ROLE is not set"):
        profile.resources()
    monkeypatch.setenv("CDC_LAKE_CONNECT_URL", "http://connect.internal:8083")
    found: Connectors = profile.resources()["connect"]
    assert isinstance(found, KafkaConnect)
    assert found.url == "http://connect.internal:8083"


def test_a_cluster_that_takes_smaller_records(monkeypatch: pytest.MonkeyPatch) -> None:
    assert profile.resources()["deployment"].record_bytes == 16 * 2**20
    monkeypatch.setenv("CDC_LAKE_KAFKA_RECORD_BYTES", "8388608")
    assert profile.resources()["deployment"].record_bytes == 8 * 2**20


def test_spark_brings_what_signs_in_to_the_brokers(monkeypatch: pytest.MonkeyPatch) -> None:
    iam = str(folder_of("msk-iam") / "aws-msk-iam-auth-2-all.jar")
    assert profile.resources()["spark"].code.more_jars == [iam]
    monkeypatch.setenv("CDC_LAKE_EMR_MORE_JARS", "/jars/own.jar")
    assert profile.resources()["spark"].code.more_jars == [iam, "/jars/own.jar"]
    monkeypatch.setenv("CDC_LAKE_KAFKA_SECURITY", "plaintext")
    assert profile.resources()["spark"].code.more_jars == ["/jars/own.jar"]


def test_without_it_the_profile_says_what_fetches_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder_of("msk-iam").rename(tmp_path / "elsewhere")
    with pytest.raises(ArtifactsMissing, match=r"msk-iam.*run `cdc-lake setup --aws`"):
        profile.resources()
    monkeypatch.setenv("CDC_LAKE_KAFKA_SECURITY", "plaintext")
    assert profile.resources()


@pytest.mark.parametrize("name", ["CDC_LAKE_BUCKET", "AWS_REGION", "CDC_LAKE_KAFKA_CLUSTER"])
def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv(name)
    monkeypatch.delenv("CDC_LAKE_CATALOG")
    with pytest.raises(ResourceError) as raised:
        profile.resources()
    assert f"{name} is not set" in str(raised.value)
    assert "CDC_LAKE_CATALOG is not set" in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("CDC_LAKE_CONNECT_WORKERS", "two", "CDC_LAKE_CONNECT_WORKERS: .*integer"),
        ("CDC_LAKE_KAFKA_SECURITY", "scram", "CDC_LAKE_KAFKA_SECURITY: .*'plaintext' or 'iam'"),
        ("CDC_LAKE_CONNECT_TAGS", "team", "CDC_LAKE_CONNECT_TAGS: .*'team' is not of the form name=value"),
        ("CDC_LAKE_EMR_APPLICATION", "", "there is no EMR: set CDC_LAKE_EMR_CLUSTER"),
        ("CDC_LAKE_QUICKSIGHT_ROLE", "reader", "CDC_LAKE_QUICKSIGHT_ROLE is 'reader' and no role's ARN"),
    ],
)
def test_what_is_wrong_is_named(name: str, value: str, said: str) -> None:
    with pytest.raises(ResourceError, match=said):
        AwsSettings.from_environment({**ENVIRONMENT, name: value})
