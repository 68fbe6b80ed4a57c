"""Least privilege in every statement of every template."""

from __future__ import annotations

import re

import boto3
import pytest
from aws_cdk import Stack

from cdc_lake_tests.infra_aws.conftest import Synthesized
from cdc_lake_tests.infra_aws.iam.statements import Statement, known, statements
from infra.aws.iam.policies import WILDCARD_REASONS, allow, allow_on_all, secret_arn

EVERYTHING = re.compile(r"\*|arn:[^:]*:[^:]*:[^:]*:[^:]*:\*")
"""A resource that means every resource, also in the form of an ARN."""
NOT_IN_REFERENCE_AS_STAR = {"cloudwatch:GetMetricData", "cloudwatch:PutMetricData"}
"""The reference has the new resource type `dataset`; metrics have no resource, and a condition limits the namespace."""

NEWER_THAN_REFERENCE = {"kafkaconnect:RestartConnector", "kafkaconnect:ResumeConnector"}
"""Operations of boto3 that are missing in cfn-lint's copy of the reference."""


def faults(statement: Statement) -> list[str]:
    """Return the parts of a statement that are too wide."""
    if statement.effect != "Allow":
        return []
    found = [f"action {action}" for action in statement.actions if "*" in action or "?" in action]
    if any(EVERYTHING.fullmatch(resource) for resource in statement.resources):
        found += [f"{action} on *" for action in statement.actions if action not in WILDCARD_REASONS]
    found += [f"principal {who}" for who in statement.principals if who == "*" or who.endswith(":root")]
    if "iam:PassRole" in statement.actions and "iam:PassedToService" not in str(statement.conditions):
        found.append("iam:PassRole to any service")
    if "cloudwatch:PutMetricData" in statement.actions and "cloudwatch:namespace" not in str(statement.conditions):
        found.append("cloudwatch:PutMetricData into any namespace")
    return found


def test_no_statement_is_too_wide(environment: Synthesized) -> None:
    checked = list(statements(environment))
    wide = [f"{statement.where}: {fault}" for statement in checked for fault in faults(statement)]
    assert wide == []
    assert len(checked) > 60, "statements are missing"


def test_no_statement_of_the_variant_is_too_wide(opposite_of_dev: Synthesized) -> None:
    assert [fault for statement in statements(opposite_of_dev) for fault in faults(statement)] == []


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
def test_a_statement_that_is_too_wide_is_found(
    actions: tuple[str, ...], resource: str, condition: dict[str, str], fault: str
) -> None:
    assert faults(Statement("here", "Allow", actions, (resource,), condition, ())) == [fault]


def test_any_principal_is_too_wide() -> None:
    assert faults(Statement("here", "Allow", ("sqs:SendMessage",), ("arn:aws:sqs:r:1:q",), {}, ("*",))) == [
        "principal *"
    ]


def test_every_action_exists(environment: Synthesized) -> None:
    actions = {action for each in statements(environment) if each.effect == "Allow" for action in each.actions}
    unknown = {action for action in actions if not action.startswith("sts:") and known(action) is None}
    assert unknown == NEWER_THAN_REFERENCE
    operations = boto3.client("kafkaconnect", region_name="us-east-1").meta.service_model.operation_names
    assert {action.partition(":")[2] for action in NEWER_THAN_REFERENCE} <= set(operations)


def test_cfn_lint_ignores_actions_newer_than_the_reference_only(environment: Synthesized) -> None:
    for where, _, resource in environment.resources():
        if "cfn-lint" in resource.get("Metadata", {}):
            assert resource["Metadata"]["cfn-lint"] == {"config": {"ignore_checks": ["W3037"]}}
            found = {action for each in statements(environment) if each.where == where for action in each.actions}
            assert found == NEWER_THAN_REFERENCE


def test_every_exception_agrees_with_the_reference() -> None:
    narrower = {action for action in WILDCARD_REASONS if (known(action) or {}).get("Resources")}
    assert narrower == NOT_IN_REFERENCE_AS_STAR
    assert all(known(action) is not None for action in WILDCARD_REASONS)


def test_every_exception_is_used(environment: Synthesized) -> None:
    used = {action for each in statements(environment) if "*" in each.resources for action in each.actions}
    assert used == set(WILDCARD_REASONS)


def test_a_wide_statement_cannot_be_created() -> None:
    with pytest.raises(ValueError, match=r"s3:Get\*: AWS may add actions"):
        allow(["s3:Get*"], ["arn:aws:s3:::b"])
    with pytest.raises(ValueError, match=r"s3:GetObject on every resource: WILDCARD_REASONS has no reason for it"):
        allow_on_all("s3:GetObject")


def test_a_secret_is_named_by_its_arn_or_its_name() -> None:
    stack, complete = Stack(), "arn:aws:secretsmanager:us-east-1:123456789012:secret:shared/registry-Ab12Cd"
    assert secret_arn(stack, complete) == complete
    assert stack.resolve(secret_arn(stack, "shared/registry"))["Fn::Join"][1][-1] == ":secret:shared/registry-??????"


def test_only_aws_services_assume_roles(environment: Synthesized) -> None:
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


def test_the_only_policy_managed_by_aws_is_that_of_emr(environment: Synthesized) -> None:
    managed = {
        str(policy)
        for _, kind, role in environment.resources()
        if kind == "AWS::IAM::Role"
        for policy in role["Properties"].get("ManagedPolicyArns", [])
        if "iam::aws:" in str(policy)
    }
    assert len(managed) == 1
    assert "AmazonEMRServicePolicy_v2" in managed.pop()
