"""The variables of the code location, compared with those that the aws profile reads."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from cdc_lake.aws_settings import AwsSettings
from cdc_lake_tests.infra_aws.conftest import REGISTRY, SALT, Synthesized
from infra.aws.sizes.size_models import Registry
from infra.aws.sizes.sizes import size
from infra.aws.stacks.dagster.settings import registry_settings
from resources.errors import ResourceError

SET_BY_USER = {"CDC_LAKE_CONNECT_PLUGIN", "CDC_LAKE_QUICKSIGHT_PRINCIPAL"}
"""Variables whose values the user enters in the size."""
DEFAULTS = {
    "CDC_LAKE_CONNECT_MAX_WORKERS",  # a source connector with one task has no use for more workers
    "CDC_LAKE_CONNECT_TAGS",
    "CDC_LAKE_CAPTURE_ROLE",  # the secret's user owns the tables, and Debezium logs in as that user
    "CDC_LAKE_CONNECT_USER",
    "CDC_LAKE_CONNECT_URL",  # for another Connect cluster; the stacks deploy MSK Connect
    "CDC_LAKE_ATHENA_USD_PER_TB",  # the price of most regions
    "CDC_LAKE_CONNECT_PASSWORD_REFERENCE",  # the member `password` of the secret that CDK creates
    "CDC_LAKE_HASH_SALT_SECRET",  # only for pipelines that hash columns
    "CDC_LAKE_EMR_ENVIRONMENT",  # the user's archive
    "CDC_LAKE_EMR_MORE_JARS",  # the user's own jars
    "CDC_LAKE_KAFKA_RECORD_BYTES",  # for MSK Serverless only
    "CDC_LAKE_KAFKA_SECURITY",  # iam, the only listener of CDK's cluster
    "CDC_LAKE_REGISTRY_URL",  # for pipelines in Avro, with a registry of the user's
    "CDC_LAKE_REGISTRY_SECRET",
    "CDC_LAKE_REGISTRY_CONVERTER_URL",
    "CDC_LAKE_CONNECT_REGISTRY_REFERENCE",
    "CDC_LAKE_POLL_SECONDS",
    "CDC_LAKE_SNAPSHOT_SECONDS",
    "CDC_LAKE_QUICKSIGHT_PAUSE_SECONDS",
    "CDC_LAKE_SOURCE_PORT",  # PostgreSQL's default
}
"""Variables for which the profile's defaults are right."""
WORKER = "CDC_LAKE_CONNECT_WORKER_"
ARN = "arn:aws:service:us-east-1:123456789012:thing/name"
"""Replaces the values that CloudFormation inserts."""


def code_variables(environment: Synthesized) -> dict[str, str]:
    """Return the variables of the task `code`."""
    [code] = [
        container
        for task in environment.of("dagster", "AWS::ECS::TaskDefinition").values()
        for container in task["ContainerDefinitions"]
        if container["Name"] == "code"
    ]
    return {each["Name"]: _text(each["Value"]) for each in code["Environment"]}


def _text(value: Any) -> str:  # noqa: ANN401 - a template's value
    if isinstance(value, str):
        return value
    separator, pieces = value.get("Fn::Join", ("", ()))
    return separator.join(_text(piece) for piece in pieces) or ARN


def aliases() -> dict[str, bool]:
    """Return the variables that the profile reads, and whether each is required."""
    fields = AwsSettings.model_fields.values()
    return {field.alias: field.is_required() for field in fields if field.alias}


def test_every_required_variable_is_set_by_the_stack_or_the_user(environment: Synthesized) -> None:
    required = {alias for alias, needed in aliases().items() if needed}
    assert required - code_variables(environment).keys() == SET_BY_USER


def test_every_other_variable_is_set_or_has_a_right_default(production: Synthesized) -> None:
    assert aliases().keys() - code_variables(production).keys() == SET_BY_USER | DEFAULTS


def test_every_variable_of_the_stack_is_read(environment: Synthesized, opposite_of_dev: Synthesized) -> None:
    for each in (environment, opposite_of_dev):
        names = {name for name in code_variables(each) if not name.startswith(WORKER)}
        assert names - aliases().keys() == {"AWS_DEFAULT_REGION", "CDC_LAKE_PROFILE", "CDC_LAKE_RUN_HOST"}


def test_the_error_names_the_variables_that_the_user_has_not_set(environment: Synthesized) -> None:
    with pytest.raises(ResourceError) as raised:
        AwsSettings.from_environment(code_variables(environment))
    missing = re.findall(r"(\w+) is not set", str(raised.value))
    assert set(missing) == SET_BY_USER


def test_the_profile_can_be_read_with_all_variables(opposite_of_dev: Synthesized) -> None:
    found = AwsSettings.from_environment(code_variables(opposite_of_dev))
    assert found.connect_plugin == opposite_of_dev.size.connect.plugin
    assert found.quicksight_principal == opposite_of_dev.size.quicksight_principal
    assert found.emr_environment.endswith(f"/{opposite_of_dev.size.emr.environment}")
    assert found.emr_python == "/opt/ours/bin/python"
    assert found.kafka_record_bytes == 8 * 2**20, "the variant has MSK Serverless"
    assert found.worker_configurations.keys() == set(opposite_of_dev.size.pipelines)
    assert (found.environment, found.region) == ("variant", "us-east-1")


def test_the_default_database_of_queries_is_the_first(opposite_of_dev: Synthesized) -> None:
    assert code_variables(opposite_of_dev)["CDC_LAKE_CATALOG"] == opposite_of_dev.size.glue_databases[0]


def test_the_profile_reads_registry_and_salt_of_the_size(opposite_of_dev: Synthesized) -> None:
    found = AwsSettings.from_environment(code_variables(opposite_of_dev))
    assert (found.registry_url, found.registry_converter_url) == (REGISTRY.url, REGISTRY.converter_url)
    assert found.registry_secret == REGISTRY.secret
    assert found.registry_reference == "${secretsmanager:shared/registry:user_info}"
    assert found.hash_salt_secret == SALT


def test_the_converter_reads_the_member_password_by_default() -> None:
    complete = "arn:aws:secretsmanager:us-east-1:123456789012:secret:registry-Ab12Cd"
    registry = Registry(url="https://registry.example.com", secret=complete)
    found = registry_settings(size("dev").model_copy(update={"registry": registry}))
    encoded = "arn%3Aaws%3Asecretsmanager%3Aus-east-1%3A123456789012%3Asecret%3Aregistry-Ab12Cd"
    assert found["CDC_LAKE_CONNECT_REGISTRY_REFERENCE"] == f"${{secretsmanager:{encoded}:password}}"
    assert found["CDC_LAKE_REGISTRY_CONVERTER_URL"] is None


def test_a_registry_without_credentials_has_no_reference() -> None:
    found = registry_settings(
        size("dev").model_copy(update={"registry": Registry(url="http://registry.internal:8080")})
    )
    assert {name for name, value in found.items() if value} == {"CDC_LAKE_REGISTRY_URL"}


def test_the_page_marks_the_variables_that_no_stack_sets(opposite_of_dev: Synthesized, production: Synthesized) -> None:
    page = (Path(__file__).parents[3] / "docs" / "aws.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1] for line in page.partition("## The variables")[2].splitlines() if line.startswith("| `")]
    marked = {name for row in rows for name in re.findall(r"`([A-Z_]+)` \(not set\)", row)}
    assert marked == aliases().keys() - code_variables(opposite_of_dev).keys() - code_variables(production).keys()
