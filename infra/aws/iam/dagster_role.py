"""IAM permissions of Dagster's services: of the code location for the AWS calls of the `aws` profile's resources, and
of the webserver for the runs' logs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aws_cdk import aws_iam as iam

from infra.aws.iam.grants import DESCRIBE_TOPIC, put_objects, read_objects, read_secret, read_topics, write_objects
from infra.aws.iam.policies import allow, allow_on_all, arn, kafka_arn
from infra.aws.stacks.catalog import CatalogStack
from infra.aws.stacks.connect import ConnectStack, offsets_topic
from infra.aws.stacks.object_events import EventsStack
from infra.aws.stacks.shared.base_stack import LakeStack
from infra.aws.stacks.shared.shared_parameters import shared_value
from infra.aws.stacks.spark import CLUSTER_PARAMETER, SparkStack
from infra.aws.stacks.storage import StorageStack
from resources.aws.metrics import NAMESPACE

RUN_LOGS = "dagster-logs/"
"""Prefix of the runs' output in the bucket `work`, as in image/dagster.yaml."""
_CATALOG = "datacatalog/AwsDataCatalog"


def object_statements(storage: StorageStack, events: EventsStack) -> list[iam.PolicyStatement]:
    """Return the permissions on buckets and on the queue of their events."""
    queue = ["DeleteMessage", "GetQueueAttributes", "ReceiveMessage"]
    return [
        *write_objects(storage.lake),
        *put_objects(storage.work, "athena-results/", RUN_LOGS),
        *put_objects(storage.artifacts, "spark/"),
        allow([f"sqs:{action}" for action in queue], [events.queue.queue_arn]),
        allow(["sqs:GetQueueAttributes", "sqs:GetQueueUrl"], [events.unhandled.queue_arn]),
    ]


def run_log_statements(storage: StorageStack) -> list[iam.PolicyStatement]:
    """Return the permission to read the runs' output, for the web server."""
    return read_objects(storage.work, RUN_LOGS)


def kafka_statements(stack: LakeStack, cluster: str) -> list[iam.PolicyStatement]:
    """Return the permissions to create, alter, describe, read and delete topics. Readers do not commit offsets."""

    def on(names: Iterable[str], *actions: str) -> iam.PolicyStatement:
        topics = [kafka_arn(stack, cluster, "topic", name) for name in names]
        return allow([f"kafka-cluster:{action}" for action in actions], topics)

    prefixes = stack.size.topic_prefixes
    return [
        *read_topics(stack, stack.size, cluster, groups=["cdc-lake-reader-*"]),
        on((f"{each}.*" for each in prefixes), "AlterTopicDynamicConfiguration", "CreateTopic", "DeleteTopic"),
        # `cdc-lake reset` also deletes Debezium's heartbeat topics, and a deleted connector's offsets.
        on((f"__debezium-heartbeat.{each}" for each in prefixes), *DESCRIBE_TOPIC, "DeleteTopic"),
        on(map(offsets_topic, stack.size.pipelines), *DESCRIBE_TOPIC, "ReadData", "WriteData"),
        allow(["kafka-cluster:WriteDataIdempotently", "kafka:DescribeClusterV2"], [cluster]),
        allow_on_all("kafka:GetBootstrapBrokers"),
    ]


def connect_statements(stack: LakeStack, connect: ConnectStack, secret: str) -> list[iam.PolicyStatement]:
    """Return the permissions to manage connectors, but not plugins, which a person uploads.

    They include logs and network interfaces, because MSK Connect creates both with the permissions of the connector's
    creator.
    """
    changes = [*(f"{verb}Connector" for verb in ("Delete", "Describe", "Update")), "ListConnectorOperations"]
    changes += ["ListTagsForResource", "TagResource"]
    workers = arn(stack, "kafkaconnect", f"worker-configuration/{stack.size.prefix}-*")
    operations = arn(stack, "kafkaconnect", "connector-operation/cdc-lake-*")
    linked_role = f"role/aws-service-role/kafkaconnect.{_DOMAIN}/AWSServiceRoleForKafkaConnect"
    return [
        allow_on_all("kafkaconnect:CreateConnector", "kafkaconnect:ListConnectors"),
        allow([f"kafkaconnect:{action}" for action in changes], [_connectors(stack)]),
        allow(["kafkaconnect:DescribeWorkerConfiguration"], [workers]),
        allow(["kafkaconnect:DescribeConnectorOperation"], [operations]),
        allow_on_all("cloudwatch:GetMetricData"),
        allow_on_all(
            *(f"logs:{verb}LogDelivery" for verb in ("Create", "Delete", "Get", "Update")),
            "logs:ListLogDeliveries",
            *(f"logs:{verb}" for verb in ("DescribeLogGroups", "DescribeResourcePolicies", "PutResourcePolicy")),
        ),
        allow_on_all(*(f"ec2:Describe{kind}" for kind in ("NetworkInterfaces", "SecurityGroups", "Subnets", "Vpcs"))),
        allow(
            ["ec2:CreateNetworkInterface"],
            [arn(stack, "ec2", f"{kind}/*") for kind in ("network-interface", "security-group", "subnet")],
        ),
        allow(["iam:CreateServiceLinkedRole"], [arn(stack, "iam", linked_role, region="")]),
        _passes(connect.role.role_arn, f"kafkaconnect.{_DOMAIN}"),
        read_secret(secret),
    ]


def restart_statement(stack: LakeStack) -> iam.PolicyStatement:
    """Return the permission to restart and resume connectors: actions that boto3 has and cfn-lint does not know yet."""
    return allow(["kafkaconnect:RestartConnector", "kafkaconnect:ResumeConnector"], [_connectors(stack)])


def catalog_statements(stack: LakeStack, catalog: CatalogStack) -> list[iam.PolicyStatement]:
    """Return the permissions on tables and views of the databases, and on queries in the workgroup."""
    tables = ["BatchCreatePartition", "BatchUpdatePartition", "CreateTable", "DeleteTable", "UpdateTable"]
    tables += ["GetDatabase", "GetPartitions", "GetTable", "GetTables"]
    athena = ["GetDatabases", "GetPartition", "BatchGetPartition"]  # Athena calls them with its caller's permissions
    queries = ["GetQueryExecution", "GetQueryResults", "StartQueryExecution", "StopQueryExecution"]
    return [
        allow([f"glue:{action}" for action in (*tables, *athena)], catalog.arns()),
        # Athena's guide requires this permission for every caller, whichever database the query uses.
        allow(["glue:GetDatabase"], [arn(stack, "glue", each) for each in ("catalog", "database/default")]),
        allow([f"athena:{action}" for action in queries], [catalog.workgroup_arn()]),
        allow(["athena:GetDataCatalog"], [arn(stack, "athena", _CATALOG)]),
    ]


def spark_statements(stack: LakeStack, spark: SparkStack) -> list[iam.PolicyStatement]:
    """Return the permissions on jobs of the application and on steps of the cluster."""
    application = spark.application.attr_arn
    runs = [f"emr-serverless:{action}" for action in ("CancelJobRun", "GetJobRun")]
    statements = [
        allow(["emr-serverless:StartJobRun"], [application]),
        allow(runs, [f"{application}/jobruns/*"]),
        _passes(spark.roles.jobs.role_arn, f"emr-serverless.{_DOMAIN}"),
    ]
    if spark.cluster is not None:
        steps = ["AddJobFlowSteps", "CancelSteps", "DescribeCluster", "DescribeStep", "ListSteps"]
        cluster = arn(stack, "elasticmapreduce", f"cluster/{shared_value(stack, spark, CLUSTER_PARAMETER)}")
        statements.append(allow([f"elasticmapreduce:{action}" for action in steps], [cluster]))
    return statements


def metric_statements() -> Sequence[iam.PolicyStatement]:
    """Return the permission to publish metrics (resources/aws/metrics.py)."""
    return [
        allow_on_all("cloudwatch:PutMetricData", conditions={"StringEquals": {"cloudwatch:namespace": NAMESPACE}}),
    ]


_DOMAIN = "amazonaws.com"


def _connectors(stack: LakeStack) -> str:
    return arn(stack, "kafkaconnect", "connector/cdc-lake-*")


def _passes(role: str, to: str) -> iam.PolicyStatement:
    return allow(["iam:PassRole"], [role], {"StringEquals": {"iam:PassedToService": to}})
