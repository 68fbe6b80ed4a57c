"""What every stack of an environment has in common."""

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
        """What becomes of data when its stack goes."""
        return RemovalPolicy.RETAIN if self.size.buckets.keep_data else RemovalPolicy.DESTROY
