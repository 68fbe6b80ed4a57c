"""Creates IAM policy statements and rejects those that allow more than necessary."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from aws_cdk import ArnFormat, Fn, Stack
from aws_cdk import aws_iam as iam

_DELIVERY = (
    "MSK Connect sets up log delivery with the permissions of a connector's creator; AWS defines no resource for it"
)
_DESCRIBES = "MSK Connect reads the network with the creator's permissions; EC2's Describe calls have no resource"

WILDCARD_REASONS: Mapping[str, str] = {
    "cloudwatch:GetMetricData": "a metric is not a resource, and no condition restricts reading",
    "cloudwatch:PutMetricData": "a metric is not a resource; the condition cloudwatch:namespace restricts it",
    "ec2:DescribeNetworkInterfaces": _DESCRIBES,
    "ec2:DescribeSecurityGroups": _DESCRIBES,
    "ec2:DescribeSubnets": _DESCRIBES,
    "ec2:DescribeVpcs": _DESCRIBES,
    "ecr:GetAuthorizationToken": "the token is for the whole registry; other statements restrict the images",
    "kafka:GetBootstrapBrokers": "AWS defines no resource for it",
    "kafkaconnect:CreateConnector": "a connector has no ARN before it is created",
    "kafkaconnect:ListConnectors": "a list has no ARN",
    "logs:CreateLogDelivery": _DELIVERY,
    "logs:DeleteLogDelivery": _DELIVERY,
    "logs:DescribeLogGroups": _DELIVERY,
    "logs:DescribeResourcePolicies": _DELIVERY,
    "logs:GetLogDelivery": _DELIVERY,
    "logs:ListLogDeliveries": _DELIVERY,
    "logs:PutResourcePolicy": _DELIVERY,
    "logs:UpdateLogDelivery": _DELIVERY,
    "quicksight:CreateDataSource": "a data source has no ARN before it is created",
    "quicksight:ListDataSets": "a list has no ARN",
    "ssmmessages:CreateControlChannel": "a channel of Session Manager is not a resource",
    "ssmmessages:CreateDataChannel": "a channel of Session Manager is not a resource",
    "ssmmessages:OpenControlChannel": "a channel of Session Manager is not a resource",
    "ssmmessages:OpenDataChannel": "a channel of Session Manager is not a resource",
}
"""Actions that are allowed on `*`, with the reason. A test compares them with the service authorization reference."""


def allow(
    actions: Sequence[str], resources: Sequence[str], conditions: Mapping[str, object] | None = None
) -> iam.PolicyStatement:
    """Return a statement that allows the actions. Raises ValueError for wildcards that can be avoided."""
    if wildcards := [action for action in actions if "*" in action]:
        raise ValueError(
            f"Cannot allow {', '.join(wildcards)}: AWS may add actions to it. Name each action that is needed."
        )
    if "*" in resources and (avoidable := [action for action in actions if action not in WILDCARD_REASONS]):
        raise ValueError(
            f"Cannot allow {', '.join(avoidable)} on every resource: WILDCARD_REASONS has no reason for it. Name the "
            "resources, or add the reason."
        )
    return iam.PolicyStatement(actions=list(actions), resources=list(resources), conditions=conditions)


def allow_on_all(*actions: str, conditions: Mapping[str, object] | None = None) -> iam.PolicyStatement:
    """Return a statement for actions of WILDCARD_REASONS. Raises ValueError for another action."""
    return allow(actions, ["*"], conditions)


def service(name: str, stack: Stack, *, source: str | None = None) -> iam.ServicePrincipal:
    """Return an AWS service as a role's principal, for this account's resources only (prevents a confused deputy)."""
    conditions: dict[str, object] = {"StringEquals": {"aws:SourceAccount": stack.account}}
    if source is not None:
        conditions["ArnLike"] = {"aws:SourceArn": source}
    return iam.ServicePrincipal(f"{name}.amazonaws.com", conditions=conditions)


def arn(stack: Stack, service_name: str, resource: str, *, region: str | None = None) -> str:
    """Return the ARN of a resource of this account, by default in its region; `resource` has the type: `table/x`."""
    made: str = stack.format_arn(
        service=service_name, resource=resource, region=region, arn_format=ArnFormat.NO_RESOURCE_NAME
    )
    return made


def secret_arn(stack: Stack, secret: str) -> str:
    """Return the ARN of a secret, given by its ARN or its name, for a statement's resources.

    Secrets Manager appends a hyphen and six random characters to a name, so the pattern matches no other name.
    """
    return secret if secret.startswith("arn:") else arn(stack, "secretsmanager", f"secret:{secret}-??????")


def kafka_arn(stack: Stack, cluster_arn: str, kind: str, name: str) -> str:
    """Return the ARN of a cluster's `topic`, `group` or `transactional-id`, with the cluster's name and UUID."""
    path = Fn.split("/", cluster_arn)
    return arn(stack, "kafka", f"{kind}/{Fn.select(1, path)}/{Fn.select(2, path)}/{name}")
