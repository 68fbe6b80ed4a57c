"""The source: Aurora PostgreSQL with logical replication, and the secrets of who speaks to it."""

from __future__ import annotations

from aws_cdk import CfnOutput, Duration, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra.aws.sizes.sizes import Size
from infra.aws.stacks.base_stack import LakeStack
from infra.aws.stacks.network import NetworkStack

REPLICATION_USER = "cdc_lake"
"""Who Debezium and Dagster are in the database; sql/replication.sql makes it."""
_UNTYPEABLE = " %+~`#$&*()|[]{}:;<>?!'/@\"\\"
"""Characters that a JDBC URL, a properties file or a shell would want quoted."""


class DatabaseStack(LakeStack):
    """One Aurora cluster, Serverless v2."""

    def __init__(self, scope: Construct, size: Size, network: NetworkStack) -> None:
        super().__init__(scope, "database", size, "Aurora PostgreSQL, the source")
        engine = rds.DatabaseClusterEngine.aurora_postgres(
            version=rds.AuroraPostgresEngineVersion.of(size.database.version, size.database.version.partition(".")[0])
        )
        self.replication_secret = self._secret(size)
        self.cluster = rds.DatabaseCluster(
            self,
            "Cluster",
            cluster_identifier=f"{size.prefix}-source",
            engine=engine,
            credentials=rds.Credentials.from_generated_secret(
                "postgres", secret_name=f"{size.prefix}/source/admin", exclude_characters=_UNTYPEABLE
            ),
            default_database_name=size.database.name,
            parameter_group=self._parameters(engine),
            serverless_v2_min_capacity=size.database.min_capacity,
            serverless_v2_max_capacity=size.database.max_capacity,
            writer=rds.ClusterInstance.serverless_v2("Writer"),
            readers=[
                # Tier 1 scales with the writer: it can take over without being too small for it.
                rds.ClusterInstance.serverless_v2(f"Reader{number}", scale_with_writer=True)
                for number in range(1, size.database.instances)
            ],
            vpc=network.vpc,
            vpc_subnets=ec2.SubnetSelection(subnet_type=ec2.SubnetType.PRIVATE_WITH_EGRESS),
            security_groups=[network.groups.postgres],
            storage_encrypted=True,
            backup=rds.BackupProps(retention=Duration.days(size.database.backup_days)),
            cloudwatch_logs_exports=["postgresql"],
            deletion_protection=size.buckets.keep_data,
            removal_policy=RemovalPolicy.SNAPSHOT if size.buckets.keep_data else RemovalPolicy.DESTROY,
        )
        CfnOutput(self, "SourceEndpoint", value=self.cluster.cluster_endpoint.hostname)
        CfnOutput(self, "ReplicationSecret", value=self.replication_secret.secret_name)

    def _parameters(self, engine: rds.IClusterEngine) -> rds.ParameterGroup:
        """`rds.logical_replication` is static: a change of it waits for the writer's restart.

        No max_slot_wal_keep_size: a slot that is cut off loses changes. WAL that it holds back is an alarm instead.
        """
        return rds.ParameterGroup(
            self,
            "Parameters",
            engine=engine,
            description="Logical replication for Debezium",
            parameters={
                "rds.logical_replication": "1",
                # A slot a pipeline, and one beside it while a resnapshot is under way.
                "max_replication_slots": "20",
                "max_wal_senders": "20",
                "rds.force_ssl": "1",
                # Statements are not logged: one of sql/replication.sql has a password in it.
                "log_statement": "none",
            },
        )

    def _secret(self, size: Size) -> secretsmanager.Secret:
        """The password of REPLICATION_USER. It is made here, so that nobody has to invent, type or see it."""
        return secretsmanager.Secret(
            self,
            "Replication",
            secret_name=f"{size.prefix}/source/replication",
            description="The database's user of Debezium and Dagster (infra/aws/sql/replication.sql)",
            generate_secret_string=secretsmanager.SecretStringGenerator(
                secret_string_template=f'{{"username": "{REPLICATION_USER}"}}',
                generate_string_key="password",
                password_length=40,
                exclude_characters=_UNTYPEABLE,
            ),
            removal_policy=self.removal,
        )
