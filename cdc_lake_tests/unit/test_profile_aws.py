"""The aws profile: the same resources as the local profile, and errors that name the variable."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cdc_lake import profile, profile_local
from cdc_lake.aws_settings import AwsSettings
from cdc_lake.contract.secret_fields import REGISTRY_AUTHORIZATION
from cdc_lake.pipeline.automation.sensors.health_sensor import EVERY_SECONDS
from cdc_lake_tests.fakes.aws.account import ACCOUNT, ENVIRONMENT, bind
from infra.artifacts.artifacts import folder_of
from infra.errors import ArtifactsMissing
from resources.aws.metrics import CloudWatchMetrics, NoMetrics
from resources.connect.connector_interface import Connectors
from resources.connect.kafka_connect import KafkaConnect
from resources.errors import ResourceError
from resources.kafka.resource import Kafka
from resources.msk_connect.resource import MskConnect
from resources.spark.emr.cluster_steps import EmrSteps
from resources.spark.emr.serverless import EmrServerlessSpark
from resources.spark.job_interface import SparkJobs


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Set the variables of the profile and create its jars."""
    bind(monkeypatch, tmp_path)


def test_the_profile_has_the_same_resources_as_the_local_one() -> None:
    found = profile.resources()
    assert found.keys() == profile_local.resources().keys()
    assert isinstance(found["spark"], SparkJobs)
    assert isinstance(found["connect"], MskConnect)
    connect: Connectors = found["connect"]  # for the type checker
    assert connect is not None


def test_variables_become_settings_of_the_resources() -> None:
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


def test_connection_errors_name_the_variables_to_check(monkeypatch: pytest.MonkeyPatch) -> None:
    found = profile.resources()
    assert "CDC_LAKE_SOURCE_HOST" in found["postgres"].hint
    assert found["kafka"].hint == "", "with IAM the resource has its own"
    monkeypatch.setenv("CDC_LAKE_KAFKA_SECURITY", "plaintext")
    monkeypatch.setenv("CDC_LAKE_CONNECT_URL", "http://connect:8083")
    found = profile.resources()
    assert "CDC_LAKE_KAFKA_CLUSTER" in found["kafka"].hint
    assert "CDC_LAKE_CONNECT_URL" in found["connect"].hint


def test_the_queue_resource_exists_only_if_it_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "queue" not in profile.resources()
    monkeypatch.setenv("CDC_LAKE_EVENTS_QUEUE", "https://sqs.eu-central-1.amazonaws.com/123456789012/raw")
    assert profile.resources()["queue"].queue_url.endswith("/raw")


def test_metrics_are_sent_only_if_the_environment_has_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(profile.resources()["metrics"], NoMetrics)
    monkeypatch.setenv("CDC_LAKE_ENVIRONMENT", "small")
    found = profile.resources()["metrics"]
    assert isinstance(found, CloudWatchMetrics)
    assert (found.environment, found.region) == ("small", "eu-central-1")
    assert found.attempts * (found.connect_timeout_seconds + found.read_timeout_seconds) < EVERY_SECONDS


def test_an_emr_cluster_is_used_if_it_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_LAKE_EMR_CLUSTER", "j-1")
    assert isinstance(profile.resources()["spark"], EmrSteps)


def test_connectors_get_scaling_and_tags(monkeypatch: pytest.MonkeyPatch) -> None:
    found = profile.resources()["connect"].settings
    assert (found.max_workers, found.tags) == (None, {})
    monkeypatch.setenv("CDC_LAKE_CONNECT_MAX_WORKERS", "4")
    monkeypatch.setenv("CDC_LAKE_CONNECT_TAGS", "team=lake, cost-center=7")
    found = profile.resources()["connect"].settings
    assert (found.max_workers, found.tags) == (4, {"team": "lake", "cost-center": "7"})


def test_an_own_kafka_connect_replaces_msk_connect(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROLE", "LOG_GROUP", "SUBNETS", "GROUPS", "PLUGIN", "WORKER_NORTHWIND"):
        monkeypatch.delenv(f"CDC_LAKE_CONNECT_{name}")
    with pytest.raises(ResourceError, match="CDC_LAKE_CONNECT_ROLE is not set"):
        profile.resources()
    monkeypatch.setenv("CDC_LAKE_CONNECT_URL", "http://connect.internal:8083")
    found: Connectors = profile.resources()["connect"]
    assert isinstance(found, KafkaConnect)
    assert found.url == "http://connect.internal:8083"


def test_the_record_size_limit_can_be_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    assert profile.resources()["deployment"].record_bytes == 16 * 2**20
    monkeypatch.setenv("CDC_LAKE_KAFKA_RECORD_BYTES", "8388608")
    assert profile.resources()["deployment"].record_bytes == 8 * 2**20


def test_spark_gets_the_jar_for_iam_authentication(monkeypatch: pytest.MonkeyPatch) -> None:
    iam = str(folder_of("msk-iam") / "aws-msk-iam-auth-2-all.jar")
    assert profile.resources()["spark"].code.more_jars == [iam]
    monkeypatch.setenv("CDC_LAKE_EMR_MORE_JARS", "/jars/own.jar")
    assert profile.resources()["spark"].code.more_jars == [iam, "/jars/own.jar"]
    monkeypatch.setenv("CDC_LAKE_KAFKA_SECURITY", "plaintext")
    assert profile.resources()["spark"].code.more_jars == ["/jars/own.jar"]


def test_a_missing_iam_jar_names_the_setup_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    folder_of("msk-iam").rename(tmp_path / "elsewhere")
    with pytest.raises(ArtifactsMissing, match=r"msk-iam.*Run `cdc-lake setup --aws`"):
        profile.resources()
    monkeypatch.setenv("CDC_LAKE_KAFKA_SECURITY", "plaintext")
    assert profile.resources()


def test_the_registry_exists_only_if_it_is_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    found = profile.resources()
    assert found["kafka"].registry is None
    assert (found["deployment"].registry_url, found["deployment"].registry_authorization) == ("", "")
    monkeypatch.setenv("CDC_LAKE_REGISTRY_URL", "https://registry/apis/ccompat/v7")
    found = profile.resources()
    assert (found["kafka"].registry.url, found["kafka"].registry.secret) == ("https://registry/apis/ccompat/v7", None)
    assert found["deployment"].registry_url == "https://registry/apis/ccompat/v7"


def test_the_registrys_secret_reaches_connect_and_jobs_as_a_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_LAKE_REGISTRY_URL", "https://registry/apis/ccompat/v7")
    monkeypatch.setenv("CDC_LAKE_REGISTRY_CONVERTER_URL", "https://registry/apis/registry/v2")
    monkeypatch.setenv("CDC_LAKE_REGISTRY_SECRET", "shared/registry")
    found = profile.resources()
    assert found["kafka"].registry.secret.secret_id == "shared/registry"
    assert found["spark"].secrets[REGISTRY_AUTHORIZATION] == "shared/registry"
    assert found["deployment"].registry_url == "https://registry/apis/registry/v2"
    assert found["deployment"].registry_authorization == "${secretsmanager:shared/registry:password}"
    monkeypatch.setenv("CDC_LAKE_CONNECT_REGISTRY_REFERENCE", "${secretsmanager:shared/registry:user_info}")
    assert profile.resources()["deployment"].registry_authorization == "${secretsmanager:shared/registry:user_info}"


@pytest.mark.parametrize("name", ["CDC_LAKE_BUCKET", "AWS_REGION", "CDC_LAKE_KAFKA_CLUSTER"])
def test_missing_variables_are_named_together(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv(name)
    monkeypatch.delenv("CDC_LAKE_CATALOG")
    with pytest.raises(ResourceError) as raised:
        profile.resources()
    assert f"{name} is not set" in str(raised.value)
    assert "CDC_LAKE_CATALOG is not set" in str(raised.value)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("CDC_LAKE_CONNECT_WORKERS", "two", "CDC_LAKE_CONNECT_WORKERS: .*integer"),
        ("CDC_LAKE_KAFKA_SECURITY", "scram", "CDC_LAKE_KAFKA_SECURITY: .*'plaintext' or 'iam'"),
        ("CDC_LAKE_CONNECT_TAGS", "team", "CDC_LAKE_CONNECT_TAGS: .*'team' does not have the form name=value"),
        ("CDC_LAKE_EMR_APPLICATION", "", "EMR is not configured: set CDC_LAKE_EMR_CLUSTER"),
        ("CDC_LAKE_QUICKSIGHT_ROLE", "reader", "CDC_LAKE_QUICKSIGHT_ROLE is 'reader', which is not the ARN of a role"),
    ],
)
def test_invalid_variables_are_named(name: str, value: str, message: str) -> None:
    with pytest.raises(ResourceError, match=message):
        AwsSettings.from_environment({**ENVIRONMENT, name: value})


def test_the_aws_profile_imports_nothing_of_the_local_stack() -> None:
    program = (
        "import sys; from cdc_lake import definitions, profile; profile.resources();"
        "print([name for name in sys.modules if name.startswith('infra.local')])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.returncode) == ("[]\n", 0), done.stderr
