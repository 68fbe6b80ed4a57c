"""The base class of an environment's stacks."""

from __future__ import annotations

from aws_cdk import Environment, RemovalPolicy, Stack, Tags
from constructs import Construct

from infra.aws.sizes.sizes import Size


class LakeStack(Stack):
    """A stack of one environment."""

    def __init__(self, scope: Construct, part: str, size: Size, description: str) -> None:
        super().__init__(
            scope,
            f"{size.prefix}-{part}",
            env=Environment(region=size.region),
            description=f"cdc-lake, {size.name}: {description}",
            termination_protection=size.buckets.keep_data,
        )
        self.size = size
        Tags.of(self).add("project", "cdc-lake")
        Tags.of(self).add("environment", size.name)

    @property
    def removal(self) -> RemovalPolicy:
        """The removal policy for data when its stack is deleted."""
        return RemovalPolicy.RETAIN if self.size.buckets.keep_data else RemovalPolicy.DESTROY
