"""Dagster's services, its storage, and the image's configuration."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import yaml
from dagster._config import process_config
from dagster._core.instance.config import dagster_instance_config
from dagster._core.workspace.config_schema import process_workspace_config
from dagster_postgres import DagsterPostgresStorage

import infra.aws
from cdc_lake_tests.infra_aws.conftest import Synthesized
from cdc_lake_tests.infra_aws.iam.role_statements import allowed, role_statements
from infra.artifacts.artifacts import folder_of
from infra.folders import cache_folder

IMAGE = Path(str(infra.aws.__file__)).parent / "image"
SERVICES = {"code", "webserver", "daemon"}


def containers(environment: Synthesized) -> dict[str, dict[str, Any]]:
    """Return each service's container."""
    return {
        container["Name"]: container
        for task in environment.of("dagster", "AWS::ECS::TaskDefinition").values()
        for container in task["ContainerDefinitions"]
    }


def variables(container: dict[str, Any]) -> set[str]:
    """Return the names of a container's environment variables."""
    return {each["Name"] for key in ("Environment", "Secrets") for each in container.get(key, [])}


def named(value: object) -> set[str]:
    """Return the environment variables that a configuration names by `env`."""
    if isinstance(value, dict):
        own = {value["env"]} if set(value) == {"env"} else set()
        return own.union(*(named(each) for each in value.values()))
    return set().union(*(named(each) for each in value)) if isinstance(value, list) else set()


def test_three_services_have_one_task_each_and_no_public_address(environment: Synthesized) -> None:
    services = environment.of("dagster", "AWS::ECS::Service").values()
    assert {service["ServiceName"] for service in services} == SERVICES
    for service in services:
        assert service["DesiredCount"] == 1
        assert service["DeploymentConfiguration"]["MaximumPercent"] == 100, "two daemons would launch each run twice"
        network = service["NetworkConfiguration"]["AwsvpcConfiguration"]
        assert network["AssignPublicIp"] == "DISABLED"
        assert len(network["SecurityGroups"]) == 1


def test_the_daemon_has_no_permissions_on_aws(environment: Synthesized) -> None:
    tasks = environment.of("dagster", "AWS::ECS::TaskDefinition").values()
    roles = {task["ContainerDefinitions"][0]["Name"]: task["TaskRoleArn"]["Fn::GetAtt"][0] for task in tasks}
    policies = environment.of("dagster", "AWS::IAM::Policy").values()
    with_permissions = {reference["Ref"] for policy in policies for reference in policy["Roles"]}
    assert roles["code"] in with_permissions
    assert roles["webserver"] in with_permissions
    assert roles["daemon"] not in with_permissions


def test_the_web_server_may_read_the_logs_of_runs_only(environment: Synthesized) -> None:
    given = role_statements(environment, "dagster-webserver")
    assert allowed(given) == {"s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads", "s3:GetObject"}
    [read] = [each for each in given if "s3:GetObject" in each.actions]
    [below] = read.resources
    logs = yaml.safe_load((IMAGE / "dagster.yaml").read_text(encoding="utf-8"))["compute_logs"]["config"]
    assert below.endswith(f"/{logs['prefix']}/*")
    [put] = [each for each in role_statements(environment, "dagster") if any(below == one for one in each.resources)]
    assert "s3:PutObject" in put.actions


def test_every_service_has_the_variables_of_the_log_location(environment: Synthesized) -> None:
    logs = yaml.safe_load((IMAGE / "dagster.yaml").read_text(encoding="utf-8"))["compute_logs"]
    for service in SERVICES:
        assert named(logs) <= variables(containers(environment)[service])


def test_secrets_are_references(environment: Synthesized) -> None:
    for container in containers(environment).values():
        assert {each["Name"] for each in container["Secrets"]} >= {"DAGSTER_POSTGRES_PASSWORD"}
        assert not [each for each in container.get("Environment", []) if "PASSWORD" in each["Name"]]


def test_the_web_server_is_the_one_that_checks_origins(environment: Synthesized) -> None:
    command = containers(environment)["webserver"]["Command"]
    assert command[:3] == ["python", "-m", "cdc_lake.webserver"]
    assert importlib.util.find_spec(f"{command[2]}.__main__") is not None


def test_the_code_location_has_the_variables_of_an_emr_cluster(dev: Synthesized, production: Synthesized) -> None:
    without, with_cluster = (variables(containers(each)["code"]) for each in (dev, production))
    assert with_cluster - without == {"CDC_LAKE_EMR_CLUSTER", "CDC_LAKE_EMR_PYTHON"}
    assert without - with_cluster == set()


def test_each_pipeline_has_its_worker_configuration(opposite_of_dev: Synthesized) -> None:
    names = variables(containers(opposite_of_dev)["code"])
    assert {name for name in names if name.startswith("CDC_LAKE_CONNECT_WORKER_")} == {
        "CDC_LAKE_CONNECT_WORKER_NORTHWIND",
        "CDC_LAKE_CONNECT_WORKER_PAGILA_QUERY",
    }


def test_dagster_accepts_the_instances_configuration(environment: Synthesized, monkeypatch: pytest.MonkeyPatch) -> None:
    found, _ = dagster_instance_config(str(IMAGE))
    storage = found["storage"]["postgres"]
    for name in named(storage):
        monkeypatch.setenv(name, "x")
    checked = process_config(DagsterPostgresStorage.config_type(), storage)
    assert checked.success, checked.errors
    for service in SERVICES:
        assert named(storage) <= variables(containers(environment)[service])


def test_the_image_contains_the_jars_that_the_code_location_uploads() -> None:
    lines = (IMAGE / "Dockerfile").read_text(encoding="utf-8").splitlines()
    [cache] = [line.partition("=")[2] for line in lines if line.startswith("ENV CDC_LAKE_CACHE=")]
    [fetched] = [index for index, line in enumerate(lines) if line.endswith("cdc-lake setup --aws")]
    assert f"COPY --from=jars {cache}/jars {cache}/jars" in lines[fetched:]
    assert cache_folder() / "jars" == folder_of("spark").parent, "the folder of the jars has another name"


def test_webserver_and_daemon_find_the_code_location(environment: Synthesized, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace = yaml.safe_load((IMAGE / "workspace.yaml").read_text(encoding="utf-8"))
    monkeypatch.setenv("CDC_LAKE_CODE_HOST", "code.somewhere.internal")
    checked = process_workspace_config(workspace)
    assert checked.success, checked.errors
    [server] = [each["grpc_server"] for each in workspace["load_from"]]
    found = containers(environment)
    assert server["port"] == found["code"]["PortMappings"][0]["ContainerPort"]
    for service in ("webserver", "daemon"):
        assert named(workspace) <= variables(found[service])
        [host] = [each["Value"] for each in found[service]["Environment"] if each["Name"] == "CDC_LAKE_CODE_HOST"]
        assert host == f"code.{environment.size.prefix}.internal"


def test_a_slow_probe_does_not_stop_the_code_location(environment: Synthesized) -> None:
    checks = {name: each["HealthCheck"] for name, each in containers(environment).items() if "HealthCheck" in each}
    assert checks.keys() == {"code"}
    times = {name: value for name, value in checks["code"].items() if name != "Command"}
    assert times == {"Interval": 60, "Timeout": 30, "Retries": 5, "StartPeriod": 120}


def test_the_storage_is_a_private_and_encrypted_database(environment: Synthesized) -> None:
    database = environment.one("dagster", "AWS::RDS::DBInstance")
    assert database["PubliclyAccessible"] is False
    assert database["StorageEncrypted"] is True
    assert database["MultiAZ"] is environment.size.dagster.storage_multi_az
    assert database["DBInstanceClass"] == f"db.{environment.size.dagster.storage_class}"
