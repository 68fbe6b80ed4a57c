"""PostgreSQL for Dagster's instance: runs, events, schedules, cursors."""

from __future__ import annotations

from aws_cdk import Duration, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_ecs as ecs
from aws_cdk import aws_rds as rds
from constructs import Construct

from infra.aws.sizes.sizes import Size
from infra.aws.stacks.network import NetworkStack

_FIELDS = (
    ("DAGSTER_POSTGRES_HOST", "host"),
    ("DAGSTER_POSTGRES_USER", "username"),
    ("DAGSTER_POSTGRES_PASSWORD", "password"),
    ("DAGSTER_POSTGRES_DB", "dbname"),
)
"""Pairs of a variable in image/dagster.yaml and the secret's field with its value."""


class DagsterStorage(Construct):
    """The database and the secret with its login."""

    def __init__(self, scope: Construct, id_: str, network: NetworkStack, size: Size) -> None:
        super().__init__(scope, id_)
        keep = size.buckets.keep_data
        self._database = rds.DatabaseInstance(
            self,
            "Database",
            instance_identifier=f"{size.prefix}-dagster",
            engine=rds.DatabaseInstanceEngine.postgres(version=rds.PostgresEngineVersion.VER_17_7),
            instance_type=ec2.InstanceType(size.dagster.storage_class),
            credentials=rds.Credentials.from_generated_secret("dagster", secret_name=f"{size.prefix}/dagster"),
            database_name="dagster",
            vpc=network.vpc,
            vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
            security_groups=[network.groups.dagster_storage],
            allocated_storage=size.dagster.storage_gib,
            storage_type=rds.StorageType.GP3,
            storage_encrypted=True,
            multi_az=size.dagster.storage_multi_az,
            backup_retention=Duration.days(7),
            deletion_protection=keep,
            removal_policy=RemovalPolicy.SNAPSHOT if keep else RemovalPolicy.DESTROY,
        )

    def environment(self) -> dict[str, ecs.Secret]:
        """Return a container's secret variables: references that ECS resolves when the container starts."""
        secret = self._database.secret
        if secret is None:
            raise TypeError("the database has no generated secret: create its credentials by from_generated_secret")
        return {name: ecs.Secret.from_secrets_manager(secret, field) for name, field in _FIELDS}
