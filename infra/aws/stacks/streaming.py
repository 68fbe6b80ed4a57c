"""Kafka: an MSK cluster, provisioned or serverless, with IAM authentication only."""

from __future__ import annotations

from aws_cdk import CfnOutput
from aws_cdk import aws_logs as logs
from aws_cdk import aws_msk as msk
from constructs import Construct

from infra.aws.sizes.size_models import Kafka
from infra.aws.sizes.sizes import Size
from infra.aws.stacks.network import NetworkStack
from infra.aws.stacks.shared.base_stack import LakeStack


class StreamingStack(LakeStack):
    """One MSK cluster, provisioned or serverless."""

    def __init__(self, scope: Construct, size: Size, network: NetworkStack) -> None:
        super().__init__(scope, "streaming", size, "MSK")
        self._subnets = [subnet.subnet_id for subnet in network.private_subnets]
        self._groups = [network.groups.kafka.security_group_id]
        self.cluster_name = f"{size.prefix}-kafka"
        self.cluster_arn = self._serverless() if size.kafka.kind == "serverless" else self._provisioned(size.kafka)
        CfnOutput(self, "KafkaClusterArn", value=self.cluster_arn)

    def _serverless(self) -> str:
        """Create the serverless cluster and return its ARN."""
        cluster = msk.CfnServerlessCluster(
            self,
            "Serverless",
            cluster_name=self.cluster_name,
            client_authentication=msk.CfnServerlessCluster.ClientAuthenticationProperty(
                sasl=msk.CfnServerlessCluster.SaslProperty(iam=msk.CfnServerlessCluster.IamProperty(enabled=True))
            ),
            vpc_configs=[
                msk.CfnServerlessCluster.VpcConfigProperty(subnet_ids=self._subnets, security_groups=self._groups)
            ],
        )
        cluster.apply_removal_policy(self.removal)
        arn: str = cluster.attr_arn
        return arn

    def _provisioned(self, kafka: Kafka) -> str:
        """Create the provisioned cluster and return its ARN."""
        configuration = msk.CfnConfiguration(
            self,
            "Configuration",
            name=f"{self.cluster_name}-{kafka.replicas}x{kafka.min_insync_replicas}",
            description="Brokers of cdc-lake",
            server_properties=broker_properties(kafka),
        )
        log_group = logs.LogGroup(
            self,
            "BrokerLogs",
            log_group_name=f"/cdc-lake/{self.size.name}/kafka",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=self.removal,
        )
        cluster = msk.CfnCluster(
            self,
            "Cluster",
            cluster_name=self.cluster_name,
            kafka_version=kafka.version,
            number_of_broker_nodes=kafka.brokers,
            broker_node_group_info=msk.CfnCluster.BrokerNodeGroupInfoProperty(
                client_subnets=self._subnets,
                instance_type=kafka.broker_type,
                security_groups=self._groups,
                storage_info=msk.CfnCluster.StorageInfoProperty(
                    ebs_storage_info=msk.CfnCluster.EBSStorageInfoProperty(volume_size=kafka.storage_gib)
                ),
            ),
            # IAM only: the only listener for clients is on port 9098.
            client_authentication=msk.CfnCluster.ClientAuthenticationProperty(
                sasl=msk.CfnCluster.SaslProperty(iam=msk.CfnCluster.IamProperty(enabled=True)),
                unauthenticated=msk.CfnCluster.UnauthenticatedProperty(enabled=False),
            ),
            encryption_info=msk.CfnCluster.EncryptionInfoProperty(
                encryption_in_transit=msk.CfnCluster.EncryptionInTransitProperty(client_broker="TLS", in_cluster=True)
            ),
            configuration_info=msk.CfnCluster.ConfigurationInfoProperty(
                arn=configuration.attr_arn, revision=configuration.attr_latest_revision_revision
            ),
            logging_info=msk.CfnCluster.LoggingInfoProperty(
                broker_logs=msk.CfnCluster.BrokerLogsProperty(
                    cloud_watch_logs=msk.CfnCluster.CloudWatchLogsProperty(
                        enabled=True, log_group=log_group.log_group_name
                    )
                )
            ),
        )
        cluster.apply_removal_policy(self.removal)
        arn: str = cluster.attr_arn
        return arn


def broker_properties(kafka: Kafka) -> str:
    """Return the brokers' server.properties.

    Unless `auto_create_topics` is false, brokers create missing topics, so a misspelled name silently creates a topic
    with the defaults below, without the pipeline's retention. Dagster and Connect do not need automatic creation: they
    create their topics with their own settings.
    """
    lines = {
        "auto.create.topics.enable": str(kafka.auto_create_topics).lower(),
        "default.replication.factor": kafka.replicas,
        "min.insync.replicas": kafka.min_insync_replicas,
        "offsets.topic.replication.factor": kafka.replicas,
        "transaction.state.log.replication.factor": kafka.replicas,
        "transaction.state.log.min.isr": kafka.min_insync_replicas,
        "num.partitions": 1,
        # The default replay window of a pipeline. Dagster creates topics with the pipeline's window or a longer one.
        "log.retention.hours": 168,
        "message.max.bytes": 16_777_216,
        "unclean.leader.election.enable": "false",
    }
    return "".join(f"{name}={value}\n" for name, value in lines.items())
