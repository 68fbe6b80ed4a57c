"""Statements of IAM policies, held to least privilege as they are written."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import ArnFormat, Fn, Stack
from aws_cdk import aws_iam as iam

_DELIVERY = "MSK Connect sets the delivery of a connector's log up with its maker's rights; AWS names no resource here"
_LOOKS = "MSK Connect looks at the network with its maker's rights; Describe calls of EC2 name no resource"

ONLY_ON_STAR: Mapping[str, str] = {
    "cloudwatch:GetMetricData": "a metric is no resource, and no condition narrows reading",
    "cloudwatch:PutMetricData": "a metric is no resource; the condition cloudwatch:namespace narrows it instead",
    "ec2:DescribeNetworkInterfaces": _LOOKS,
    "ec2:DescribeSecurityGroups": _LOOKS,
    "ec2:DescribeSubnets": _LOOKS,
    "ec2:DescribeVpcs": _LOOKS,
    "ecr:GetAuthorizationToken": "the token is the registry's; which images it opens is the other statements' matter",
    "kafka:GetBootstrapBrokers": "AWS defines no resource for it",
    "kafkaconnect:CreateConnector": "a connector has no ARN before it is made",
    "kafkaconnect:ListConnectors": "a list has no ARN",
    "logs:CreateLogDelivery": _DELIVERY,
    "logs:DeleteLogDelivery": _DELIVERY,
    "logs:DescribeLogGroups": _DELIVERY,
    "logs:DescribeResourcePolicies": _DELIVERY,
    "logs:GetLogDelivery": _DELIVERY,
    "logs:ListLogDeliveries": _DELIVERY,
    "logs:PutResourcePolicy": _DELIVERY,
    "logs:UpdateLogDelivery": _DELIVERY,
    "quicksight:CreateDataSource": "a data source has no ARN before it is made",
    "quicksight:ListDataSets": "a list has no ARN",
    "ssmmessages:CreateControlChannel": "a channel of Session Manager is no resource",
    "ssmmessages:CreateDataChannel": "a channel of Session Manager is no resource",
    "ssmmessages:OpenControlChannel": "a channel of Session Manager is no resource",
    "ssmmessages:OpenDataChannel": "a channel of Session Manager is no resource",
}
"""What may stand on `*`, and why. A test holds it against the service authorization reference."""


def allow(
    actions: Sequence[str], resources: Sequence[str], conditions: Mapping[str, object] | None = None
) -> iam.PolicyStatement:
    """A statement that allows the actions. Raises ValueError where it is wider than it has to be."""
    if families := [action for action in actions if "*" in action]:
        raise ValueError(f"{', '.join(families)} stands for whatever AWS adds to it: name each action that is needed")
    if "*" in resources and (narrower := [action for action in actions if action not in ONLY_ON_STAR]):
        raise ValueError(
            f"{', '.join(narrower)} on every resource: name the resources, or give the reason in ONLY_ON_STAR"
        )
    return iam.PolicyStatement(actions=list(actions), resources=list(resources), conditions=conditions)


def on_any(*actions: str, conditions: Mapping[str, object] | None = None) -> iam.PolicyStatement:
    """A statement for actions of ONLY_ON_STAR. Raises ValueError for another one."""
    return allow(actions, ["*"], conditions)


def service(name: str, stack: Stack, *, source: str | None = None) -> iam.ServicePrincipal:
    """An AWS service as who may take a role, for this account's resources only (no confused deputy)."""
    conditions: dict[str, object] = {"StringEquals": {"aws:SourceAccount": stack.account}}
    if source is not None:
        conditions["ArnLike"] = {"aws:SourceArn": source}
    return iam.ServicePrincipal(f"{name}.amazonaws.com", conditions=conditions)


def arn(stack: Stack, service_name: str, resource: str, *, region: str | None = None) -> str:
    """The ARN of a resource of this account and region, `resource` with its type: `table/datalake/x`."""
    made: str = stack.format_arn(
        service=service_name, resource=resource, region=region, arn_format=ArnFormat.NO_RESOURCE_NAME
    )
    return made


def kafka_arn(stack: Stack, cluster_arn: str, kind: str, name: str) -> str:
    """The ARN of a cluster's `topic`, `group` or `transactional-id`: the cluster's name and UUID are part of it."""
    path = Fn.split("/", cluster_arn)
    return arn(stack, "kafka", f"{kind}/{Fn.select(1, path)}/{Fn.select(2, path)}/{name}")
