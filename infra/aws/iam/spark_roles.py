"""The roles of Spark's jobs, and the role with which EMR creates machines for them."""

from __future__ import annotations

from aws_cdk import aws_iam as iam
from constructs import Construct

from infra.aws.iam.grants import (
    grant,
    put_objects,
    read_objects,
    read_secret,
    read_tables,
    read_topics,
    read_user_secrets,
    write_objects,
    write_topics,
)
from infra.aws.iam.policies import allow, service
from infra.aws.sizes.size_models import Emr
from infra.aws.stacks.catalog import CatalogStack
from infra.aws.stacks.database import DatabaseStack
from infra.aws.stacks.shared.base_stack import LakeStack
from infra.aws.stacks.storage import StorageStack
from infra.aws.stacks.streaming import StreamingStack

SERVICE_POLICY = "service-role/AmazonEMRServicePolicy_v2"


class SparkRoles(Construct):
    """Three roles: `nodes` for a cluster's machines, `jobs` for EMR Serverless, and `emr` for the EMR service.

    `nodes` and `jobs` have only the permissions that the jobs need.
    """

    def __init__(
        self,
        scope: LakeStack,
        id_: str,
        database: DatabaseStack,
        streaming: StreamingStack,
        storage: StorageStack,
        catalog: CatalogStack,
    ) -> None:
        super().__init__(scope, id_)
        prefix = scope.size.prefix
        self.nodes = iam.Role(
            self, "Node", role_name=f"{prefix}-spark-node", assumed_by=iam.ServicePrincipal("ec2.amazonaws.com")
        )
        self.profile = iam.CfnInstanceProfile(
            self, "Profile", instance_profile_name=f"{prefix}-spark-node", roles=[self.nodes.role_name]
        )
        self.jobs = iam.Role(self, "Job", role_name=f"{prefix}-spark-job", assumed_by=service("emr-serverless", scope))
        for role in (self.nodes, self.jobs):
            grant(
                role,
                *read_objects(storage.artifacts, "spark/", *_uploaded_keys(scope.size.emr)),
                *put_objects(storage.artifacts, "spark/runs/"),  # a job writes its report there
                *write_objects(storage.lake),
                *put_objects(storage.work, "emr-logs/"),
                *read_topics(scope, scope.size, streaming.cluster_arn, groups=["spark-kafka-*", "cdc-lake-reader-*"]),
                read_tables(scope, catalog.arns()),
                *read_user_secrets(scope, scope.size.registry_secret, scope.size.hash_salt_secret),
            )
            if scope.size.emr.writes_topics:
                grant(role, *write_topics(scope, scope.size, streaming.cluster_arn))
            if scope.size.database.read_by_spark:
                grant(role, read_secret(database.replication_secret.secret_arn))
        self.emr = iam.Role(
            self,
            "Service",
            role_name=f"{prefix}-emr-service",
            assumed_by=service("elasticmapreduce", scope),
            managed_policies=[iam.ManagedPolicy.from_aws_managed_policy_name(SERVICE_POLICY)],
        )
        # The managed policy allows iam:PassRole for EMR_EC2_DefaultRole only.
        grant(
            self.emr,
            allow(
                ["iam:PassRole"],
                [self.nodes.role_arn],
                {"StringLike": {"iam:PassedToService": "ec2.amazonaws.com*"}},
            ),
        )


def _uploaded_keys(emr: Emr) -> list[str]:
    """Return the keys of the objects for Spark that a person uploads to the bucket of artifacts."""
    cluster_keys: tuple[str | None, ...] = (emr.cluster.bootstrap, emr.cluster.requirements) if emr.cluster else ()
    return [key for key in (emr.environment, *cluster_keys) if key]
