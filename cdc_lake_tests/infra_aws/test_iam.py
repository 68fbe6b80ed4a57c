"""Least privilege, over every statement of every template."""

from __future__ import annotations

import re

import boto3
import pytest

from cdc_lake_tests.infra_aws.conftest import Synthesized
from cdc_lake_tests.infra_aws.statements import Statement, known, statements
from infra.aws.iam.policies import ONLY_ON_STAR, allow, on_any

EVERYTHING = re.compile(r"\*|arn:[^:]*:[^:]*:[^:]*:[^:]*:\*")
"""A resource that is every resource, also where it is spelled as an ARN."""
NOT_IN_REFERENCE_AS_STAR = {"cloudwatch:GetMetricData", "cloudwatch:PutMetricData"}
"""The reference names the new type `dataset`; a metric has none: a condition narrows what may be put."""

NEWER_THAN_REFERENCE = {"kafkaconnect:RestartConnector", "kafkaconnect:ResumeConnector"}
"""boto3 has the calls; cfn-lint's copy of the reference doesn't."""


def faults(statement: Statement) -> list[str]:
    """What is too wide about a statement."""
    if statement.effect != "Allow":
        return []
    found = [f"action {action}" for action in statement.actions if "*" in action or "?" in action]
    if any(EVERYTHING.fullmatch(resource) for resource in statement.resources):
        found += [f"{action} on *" for action in statement.actions if action not in ONLY_ON_STAR]
    found += [f"principal {who}" for who in statement.principals if who == "*" or who.endswith(":root")]
    if "iam:PassRole" in statement.actions and "iam:PassedToService" not in str(statement.conditions):
        found.append("iam:PassRole to any service")
    if "cloudwatch:PutMetricData" in statement.actions and "cloudwatch:namespace" not in str(statement.conditions):
        found.append("cloudwatch:PutMetricData into any namespace")
    return found


def test_no_statement_is_wider_than_it_has_to_be(environment: Synthesized) -> None:
    checked = list(statements(environment))
    wide = [f"{statement.where}: {fault}" for statement in checked for fault in faults(statement)]
    assert wide == []
    assert len(checked) > 60, "the statements are not found where they are"


def test_the_variant_too(variant: Synthesized) -> None:
    assert [fault for statement in statements(variant) for fault in faults(statement)] == []


@pytest.mark.parametrize(
    ("actions", "resource", "condition", "fault"),
    [
        (("s3:Get*",), "arn:aws:s3:::b", {}, "action s3:Get*"),
        (("s3:GetObject",), "*", {}, "s3:GetObject on *"),
        (("sqs:SendMessage",), "arn:aws:sqs:us-east-1:1:*", {}, "sqs:SendMessage on *"),
        (("iam:PassRole",), "arn:aws:iam::1:role/r", {}, "iam:PassRole to any service"),
        (("cloudwatch:PutMetricData",), "*", {}, "cloudwatch:PutMetricData into any namespace"),
    ],
)
def test_what_is_too_wide_is_found(
    actions: tuple[str, ...], resource: str, condition: dict[str, str], fault: str
) -> None:
    assert faults(Statement("here", "Allow", actions, (resource,), condition, ())) == [fault]


def test_whoever_asks_is_no_principal() -> None:
    assert faults(Statement("here", "Allow", ("sqs:SendMessage",), ("arn:aws:sqs:r:1:q",), {}, ("*",))) == [
        "principal *"
    ]


def test_every_action_exists(environment: Synthesized) -> None:
    actions = {action for each in statements(environment) if each.effect == "Allow" for action in each.actions}
    unknown = {action for action in actions if not action.startswith("sts:") and known(action) is None}
    assert unknown == NEWER_THAN_REFERENCE
    operations = boto3.client("kafkaconnect", region_name="us-east-1").meta.service_model.operation_names
    assert {action.partition(":")[2] for action in NEWER_THAN_REFERENCE} <= set(operations)


def test_only_those_are_kept_from_cfn_lint(environment: Synthesized) -> None:
    for where, _, resource in environment.resources():
        if "cfn-lint" in resource.get("Metadata", {}):
            assert resource["Metadata"]["cfn-lint"] == {"config": {"ignore_checks": ["W3037"]}}
            found = {action for each in statements(environment) if each.where == where for action in each.actions}
            assert found == NEWER_THAN_REFERENCE


def test_an_exception_is_one_by_the_reference() -> None:
    narrower = {action for action in ONLY_ON_STAR if (known(action) or {}).get("Resources")}
    assert narrower == NOT_IN_REFERENCE_AS_STAR
    assert all(known(action) is not None for action in ONLY_ON_STAR)


def test_no_exception_is_left_over(environment: Synthesized) -> None:
    used = {action for each in statements(environment) if "*" in each.resources for action in each.actions}
    assert used == set(ONLY_ON_STAR)


def test_a_wide_statement_is_refused_as_it_is_written() -> None:
    with pytest.raises(ValueError, match=r"s3:Get\* stands for whatever AWS adds"):
        allow(["s3:Get*"], ["arn:aws:s3:::b"])
    with pytest.raises(ValueError, match="s3:GetObject on every resource: name the resources"):
        on_any("s3:GetObject")


def test_only_services_of_aws_take_roles(environment: Synthesized) -> None:
    roles = [r for _, kind, r in environment.resources() if kind == "AWS::IAM::Role"]
    principals = {
        service
        for role in roles
        for statement in role["Properties"]["AssumeRolePolicyDocument"]["Statement"]
        for service in [statement["Principal"]["Service"]]
    }
    assert principals == {
        "ec2.amazonaws.com",
        "ecs-tasks.amazonaws.com",
        "elasticmapreduce.amazonaws.com",
        "emr-serverless.amazonaws.com",
        "kafkaconnect.amazonaws.com",
        "quicksight.amazonaws.com",
    }


def test_the_only_policy_of_amazons_is_emrs(environment: Synthesized) -> None:
    managed = {
        str(policy)
        for _, kind, role in environment.resources()
        if kind == "AWS::IAM::Role"
        for policy in role["Properties"].get("ManagedPolicyArns", [])
        if "iam::aws:" in str(policy)
    }
    assert len(managed) == 1
    assert "AmazonEMRServicePolicy_v2" in managed.pop()
