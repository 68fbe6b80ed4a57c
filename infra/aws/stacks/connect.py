"""Worker configurations, role and log group for connectors on MSK Connect. Dagster creates the connectors."""

from __future__ import annotations

import hashlib

from aws_cdk import CfnOutput, Fn
from aws_cdk import aws_iam as iam
from aws_cdk import aws_kafkaconnect as kafkaconnect
from aws_cdk import aws_logs as logs
from constructs import Construct

from infra.aws.iam.grants import connect_to_kafka, grant, read_secret, read_user_secrets, write_objects
from infra.aws.iam.policies import allow, arn, kafka_arn, service
from infra.aws.sizes.sizes import Size
from infra.aws.stacks.database import DatabaseStack
from infra.aws.stacks.shared.base_stack import LakeStack
from infra.aws.stacks.shared.shared_parameters import share
from infra.aws.stacks.storage import StorageStack
from infra.aws.stacks.streaming import StreamingStack
from resources.connect.plugin_archive import CONFIG_PROVIDER

OFFSET_FLUSH_MS = 5000
_WRITE_TOPIC = ["AlterTopicDynamicConfiguration", "CreateTopic", "DescribeTopic", "DescribeTopicDynamicConfiguration"]


def connector_name(pipeline: str) -> str:
    """Return the name of a pipeline's source connector, the same as cdc_lake.pipeline.pipeline.Pipeline.connector."""
    return f"cdc-lake-{pipeline}"


def offsets_topic(pipeline: str) -> str:
    """Return the topic of the connector's source offsets.

    The name is set because MSK Connect otherwise creates a topic for each connector, and a re-created connector would
    start without offsets.
    """
    return f"cdc-lake-connect-offsets-{pipeline}"


def worker_parameter(pipeline: str) -> str:
    """Return the name of the shared parameter with the ARN of a pipeline's worker configuration."""
    return f"connect-worker-{pipeline}"


def worker_properties(pipeline: str, region: str) -> str:
    """Return a worker's properties. The plugin's archive has to contain the class of the config provider."""
    return "".join(
        f"{name}={value}\n"
        for name, value in {
            "key.converter": "org.apache.kafka.connect.json.JsonConverter",
            "key.converter.schemas.enable": "false",
            "value.converter": "org.apache.kafka.connect.json.JsonConverter",
            "value.converter.schemas.enable": "false",
            "offset.storage.topic": offsets_topic(pipeline),
            # Without exactly-once, the slot's confirmed position can be ahead of the stored offset for this long; the
            # default is one minute (docs/decisions/0031-without-exactly-once.md).
            "offset.flush.interval.ms": str(OFFSET_FLUSH_MS),
            # A connector's configuration contains ${secretsmanager:<secret>:password} instead of the password.
            "config.providers": "secretsmanager",
            "config.providers.secretsmanager.class": CONFIG_PROVIDER,
            "config.providers.secretsmanager.param.region": region,
        }.items()
    )


class ConnectStack(LakeStack):
    """One worker configuration for each pipeline; one role and log group for all."""

    def __init__(
        self,
        scope: Construct,
        size: Size,
        database: DatabaseStack,
        streaming: StreamingStack,
        storage: StorageStack,
    ) -> None:
        super().__init__(scope, "connect", size, "role, logs and worker configurations for MSK Connect")
        self.role = iam.Role(
            self,
            "Role",
            role_name=f"{size.prefix}-connect",
            assumed_by=service("kafkaconnect", self, source=arn(self, "kafkaconnect", "connector/cdc-lake-*")),
        )
        grant(
            self.role,
            read_secret(database.replication_secret.secret_arn),
            # AWS's policy for its config provider includes this action.
            allow(["secretsmanager:DescribeSecret"], [database.replication_secret.secret_arn]),
            # For the Avro converter. The salt of hashed columns is in the connector's configuration.
            *read_user_secrets(self, size.registry_secret),
            *self._kafka(streaming.cluster_arn),
            *write_objects(storage.lake, "raw/", ".indexes/"),  # for S3 sinks; Lenses keeps state in .indexes/
        )
        self.log_group = logs.LogGroup(
            self,
            "Log",
            log_group_name=f"/cdc-lake/{size.name}/connect",
            retention=retention(size.connect.log_days),
            removal_policy=self.removal,
        )
        for pipeline in size.pipelines:
            content = worker_properties(pipeline, size.region)
            # A worker configuration is immutable. CloudFormation creates the replacement before it deletes the old one,
            # so the names have to differ.
            digest = hashlib.sha256(content.encode()).hexdigest()[:8]
            configuration = kafkaconnect.CfnWorkerConfiguration(
                self,
                f"Worker-{pipeline}",
                name=f"{size.prefix}-{pipeline}-{digest}".replace("_", "-"),  # MSK Connect allows no underscores
                description=f"Workers of {connector_name(pipeline)}",
                properties_file_content=Fn.base64(content),
            )
            share(self, worker_parameter(pipeline), configuration.attr_worker_configuration_arn)
        CfnOutput(self, "ConnectRole", value=self.role.role_arn)
        CfnOutput(self, "ConnectLogGroup", value=self.log_group.log_group_name)

    def _kafka(self, cluster: str) -> list[iam.PolicyStatement]:
        internal = "__amazon_msk_connect_*"
        topics = [f"{prefix}.*" for prefix in self.size.topic_prefixes]
        topics += [f"__debezium-heartbeat.{prefix}" for prefix in self.size.topic_prefixes]
        topics += [internal, *map(offsets_topic, self.size.pipelines)]
        topic_actions = [f"kafka-cluster:{action}" for action in (*_WRITE_TOPIC, "ReadData", "WriteData")]
        return [
            connect_to_kafka(cluster),
            allow(["kafka-cluster:WriteDataIdempotently"], [cluster]),
            allow(topic_actions, [kafka_arn(self, cluster, "topic", topic) for topic in topics]),
            allow(
                ["kafka-cluster:AlterGroup", "kafka-cluster:DescribeGroup"],
                # Workers coordinate in MSK Connect's group; a sink's group is connect-<its name>.
                [kafka_arn(self, cluster, "group", group) for group in (internal, "connect-cdc-lake-*")],
            ),
        ]


def retention(days: int) -> logs.RetentionDays:
    """Return the shortest of the listed CloudWatch retention periods that is at least `days`."""
    offered = {
        1: logs.RetentionDays.ONE_DAY,
        7: logs.RetentionDays.ONE_WEEK,
        30: logs.RetentionDays.ONE_MONTH,
        90: logs.RetentionDays.THREE_MONTHS,
        365: logs.RetentionDays.ONE_YEAR,
        3653: logs.RetentionDays.TEN_YEARS,
    }
    return next(each for most, each in offered.items() if days <= most)
