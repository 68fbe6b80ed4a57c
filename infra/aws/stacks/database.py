"""The source: Aurora PostgreSQL with logical replication, and the secrets of its users."""

from __future__ import annotations

from aws_cdk import CfnOutput, Duration, RemovalPolicy
from aws_cdk import aws_ec2 as ec2
from aws_cdk import aws_rds as rds
from aws_cdk import aws_secretsmanager as secretsmanager
from constructs import Construct

from infra.aws.sizes.sizes import Size
from infra.aws.stacks.network import NetworkStack
from infra.aws.stacks.shared.base_stack import LakeStack

REPLICATION_USER = "cdc_lake"
"""The database user of Debezium and Dagster, which infra/aws/sql/replication.sql creates."""
_EXCLUDED_CHARACTERS = " %+~`#$&*()|[]{}:;<>?!'/@\"\\"
"""Characters that have to be quoted in a JDBC URL, a properties file or a shell."""


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
                "postgres", secret_name=f"{size.prefix}/source/admin", exclude_characters=_EXCLUDED_CHARACTERS
            ),
            default_database_name=size.database.name,
            parameter_group=self._parameters(engine),
            serverless_v2_min_capacity=size.database.min_capacity,
            serverless_v2_max_capacity=size.database.max_capacity,
            writer=rds.ClusterInstance.serverless_v2("Writer"),
            readers=[
                # A reader that scales with the writer is large enough to take over.
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
        """Return the parameter group. A change of `rds.logical_replication` takes effect at the writer's restart.

        max_slot_wal_keep_size is not set, because PostgreSQL would invalidate a slot that exceeds it, and changes would
        be lost. There is an alarm on retained WAL instead (alarms.py).
        """
        return rds.ParameterGroup(
            self,
            "Parameters",
            engine=engine,
            description="Logical replication for Debezium",
            parameters={
                "rds.logical_replication": "1",
                # One slot for each pipeline, and a second one during a resnapshot.
                "max_replication_slots": "20",
                "max_wal_senders": "20",
                "rds.force_ssl": "1",
                # Statements are not logged, since one in infra/aws/sql/replication.sql contains a password.
                "log_statement": "none",
            },
        )

    def _secret(self, size: Size) -> secretsmanager.Secret:
        """Return the secret of REPLICATION_USER, with a generated password that no person has to choose or see."""
        return secretsmanager.Secret(
            self,
            "Replication",
            secret_name=f"{size.prefix}/source/replication",
            description="Login of Debezium and Dagster in the source database (infra/aws/sql/replication.sql)",
            generate_secret_string=secretsmanager.SecretStringGenerator(
                secret_string_template=f'{{"username": "{REPLICATION_USER}"}}',
                generate_string_key="password",
                password_length=40,
                exclude_characters=_EXCLUDED_CHARACTERS,
            ),
            removal_policy=self.removal,
        )
