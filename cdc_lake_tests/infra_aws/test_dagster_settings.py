"""What the code location is told, held against what the aws profile reads."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cdc_lake.aws_settings import AwsSettings
from cdc_lake_tests.infra_aws.conftest import Synthesized
from resources.errors import ResourceError

GIVEN = {"CDC_LAKE_CONNECT_PLUGIN", "CDC_LAKE_QUICKSIGHT_PRINCIPAL"}
"""What only a person knows: fields of the size."""
LEFT = {
    "CDC_LAKE_CONNECT_MAX_WORKERS",  # a source connector with one task has no use for more workers
    "CDC_LAKE_CONNECT_TAGS",
    "CDC_LAKE_CAPTURE_ROLE",  # the secret's user owns the tables, and Debezium signs in as it
    "CDC_LAKE_CONNECT_USER",
    "CDC_LAKE_CONNECT_URL",  # a Connect of one's own; the stacks make what MSK Connect needs
    "CDC_LAKE_ATHENA_USD_PER_TB",  # the price of most regions
    "CDC_LAKE_CONNECT_PASSWORD_REFERENCE",  # the member `password` of the secret, which CDK makes so
    "CDC_LAKE_EMR_ENVIRONMENT",  # a person's archive
    "CDC_LAKE_EMR_MORE_JARS",  # jars of a person's own
    "CDC_LAKE_KAFKA_RECORD_BYTES",  # of MSK Serverless only
    "CDC_LAKE_KAFKA_SECURITY",  # iam, the only listener that CDK's cluster has
    "CDC_LAKE_POLL_SECONDS",
    "CDC_LAKE_SNAPSHOT_SECONDS",
    "CDC_LAKE_QUICKSIGHT_PAUSE_SECONDS",
    "CDC_LAKE_SOURCE_PORT",  # PostgreSQL's own
}
"""What the profile's defaults are right for."""
WORKER = "CDC_LAKE_CONNECT_WORKER_"
ARN = "arn:aws:service:us-east-1:123456789012:thing/name"
"""Stands for what CloudFormation fills in."""


def told(environment: Synthesized) -> dict[str, str]:
    """The variables of the task `code`."""
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
    """The variables that the profile reads, and whether it can't do without."""
    fields = AwsSettings.model_fields.values()
    return {field.alias: field.is_required() for field in fields if field.alias}


def test_all_that_is_required_is_told_or_is_a_persons_to_give(environment: Synthesized) -> None:
    required = {alias for alias, needed in aliases().items() if needed}
    assert required - told(environment).keys() == GIVEN


def test_the_rest_is_told_but_for_what_defaults_are_right_for(production: Synthesized) -> None:
    assert aliases().keys() - told(production).keys() == GIVEN | LEFT


def test_nothing_is_told_that_nobody_reads(environment: Synthesized, variant: Synthesized) -> None:
    for each in (environment, variant):
        names = {name for name in told(each) if not name.startswith(WORKER)}
        assert names - aliases().keys() == {"AWS_DEFAULT_REGION", "CDC_LAKE_PROFILE", "CDC_LAKE_RUN_HOST"}


def test_an_environment_without_what_a_person_gives_says_what_is_missing(environment: Synthesized) -> None:
    with pytest.raises(ResourceError) as raised:
        AwsSettings.from_environment(told(environment))
    said = re.findall(r"(\w+) is not set", str(raised.value))
    assert set(said) == GIVEN


def test_with_it_the_profile_can_be_bound(variant: Synthesized) -> None:
    found = AwsSettings.from_environment(told(variant))
    assert found.connect_plugin == variant.size.connect.plugin
    assert found.quicksight_principal == variant.size.quicksight_principal
    assert found.emr_environment.endswith(f"/{variant.size.emr.environment}")
    assert found.emr_python == "/opt/ours/bin/python"
    assert found.kafka_record_bytes == 8 * 2**20, "the variant has MSK Serverless"
    assert found.connect_workers_of.keys() == set(variant.size.pipelines)
    assert (found.environment, found.region) == ("variant", "us-east-1")
