"""What Dagster's code location may do: what the `aws` profile's resources ask of AWS.

Here: the policy, a method a system. Not here: the services that run with it (dagster.py).
"""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import aws_iam as iam

from infra.aws.catalog import CatalogStack
from infra.aws.connect import ConnectStack
from infra.aws.events import EventsStack
from infra.aws.policies import allow, arn, kafka_arn, on_any
from infra.aws.rights import reads_secret, reads_topics, writes
from infra.aws.spark import SparkStack
from infra.aws.stack import LakeStack
from infra.aws.storage import StorageStack
from resources.metrics import NAMESPACE

_CATALOGS = "datacatalog/AwsDataCatalog"


def object_statements(storage: StorageStack, events: EventsStack) -> list[iam.PolicyStatement]:
    """Buckets and the queue of their events."""
    queue = ["ChangeMessageVisibility", "DeleteMessage", "GetQueueAttributes", "ReceiveMessage"]
    return [
        *writes(storage.lake),
        *writes(storage.work, "athena-results/", "emr-logs/"),
        *writes(storage.artifacts),
        allow([f"sqs:{action}" for action in queue], [events.queue.queue_arn]),
        allow(["sqs:GetQueueAttributes", "sqs:GetQueueUrl"], [events.unhandled.queue_arn]),
    ]


def kafka_statements(stack: LakeStack, cluster: str) -> list[iam.PolicyStatement]:
    """Topics are made, changed and looked at; records are read by explicit offsets, in a group that commits none."""
    topics = [kafka_arn(stack, cluster, "topic", f"{prefix}.*") for prefix in stack.size.topic_prefixes]
    makes = ["AlterTopic", "AlterTopicDynamicConfiguration", "CreateTopic", "DeleteTopic"]
    return [
        *reads_topics(stack, stack.size, cluster, groups=["cdc-lake-reader-*"]),
        allow([f"kafka-cluster:{action}" for action in makes], topics),
        allow(["kafka:DescribeClusterV2"], [cluster]),
        on_any("kafka:GetBootstrapBrokers"),
    ]


def connect_statements(stack: LakeStack, connect: ConnectStack, secret: str) -> list[iam.PolicyStatement]:
    """Plugins and connectors. Making one sets up its log with the maker's rights."""
    own = [arn(stack, "kafkaconnect", f"{kind}/cdc-lake-*") for kind in ("connector", "custom-plugin")]
    workers = [arn(stack, "kafkaconnect", f"worker-configuration/{stack.size.prefix}-*")]
    changes = ["DeleteConnector", "DescribeConnector", "UpdateConnector", "TagResource", "ListTagsForResource"]
    changes += ["DeleteCustomPlugin", "DescribeCustomPlugin", "ListConnectorOperations"]
    slr = f"role/aws-service-role/kafkaconnect.{_DOMAIN}/AWSServiceRoleForKafkaConnect"
    return [
        on_any(
            "kafkaconnect:CreateConnector",
            "kafkaconnect:CreateCustomPlugin",
            "kafkaconnect:ListConnectors",
            "kafkaconnect:ListCustomPlugins",
            "kafkaconnect:ListWorkerConfigurations",
        ),
        allow([f"kafkaconnect:{action}" for action in changes], own),
        allow(["kafkaconnect:DescribeWorkerConfiguration"], workers),
        allow(
            ["kafkaconnect:DescribeConnectorOperation"],
            [arn(stack, "kafkaconnect", "connector-operation/cdc-lake-*")],
        ),
        on_any(
            *(f"logs:{verb}" for verb in ("CreateLogDelivery", "GetLogDelivery", "ListLogDeliveries")),
            *(f"logs:{verb}" for verb in ("DescribeLogGroups", "DescribeResourcePolicies", "PutResourcePolicy")),
        ),
        on_any("ec2:DescribeSecurityGroups", "ec2:DescribeSubnets", "ec2:DescribeVpcs"),
        allow(["iam:CreateServiceLinkedRole"], [arn(stack, "iam", slr, region="")]),
        _passes(connect.role.role_arn, f"kafkaconnect.{_DOMAIN}"),
        reads_secret(secret),
    ]


def catalog_statements(stack: LakeStack, catalog: CatalogStack) -> list[iam.PolicyStatement]:
    """Tables and views of the one database, and queries in the one workgroup."""
    reads = [
        "GetDatabase",
        "GetDatabases",
        "GetPartition",
        "GetPartitions",
        "GetTable",
        "GetTables",
        "GetTableVersions",
    ]
    makes = ["BatchCreatePartition", "BatchDeletePartition", "CreateTable", "DeleteTable", "UpdateTable"]
    queries = ["GetQueryExecution", "GetQueryResults", "GetWorkGroup", "StartQueryExecution", "StopQueryExecution"]
    metadata = ["GetDataCatalog", "GetDatabase", "GetTableMetadata", "ListDatabases", "ListTableMetadata"]
    return [
        allow([f"glue:{action}" for action in (*reads, *makes)], catalog.arns()),
        allow([f"athena:{action}" for action in queries], [catalog.workgroup_arn()]),
        allow([f"athena:{action}" for action in metadata], [arn(stack, "athena", _CATALOGS)]),
    ]


def spark_statements(stack: LakeStack, spark: SparkStack) -> list[iam.PolicyStatement]:
    """Jobs on the one application, and steps on the one cluster."""
    application = spark.application.attr_arn
    runs = [f"emr-serverless:{action}" for action in ("CancelJobRun", "GetDashboardForJobRun", "GetJobRun")]
    use = [
        f"emr-serverless:{action}" for action in ("GetApplication", "ListJobRuns", "StartApplication", "StartJobRun")
    ]
    statements = [
        allow(use, [application]),
        allow(runs, [f"{application}/jobruns/*"]),
        _passes(spark.roles.jobs.role_arn, f"emr-serverless.{_DOMAIN}"),
    ]
    if spark.cluster is not None:
        steps = ["AddJobFlowSteps", "CancelSteps", "DescribeCluster", "DescribeStep", "ListSteps"]
        cluster = arn(stack, "elasticmapreduce", f"cluster/{spark.cluster.ref}")
        statements.append(allow([f"elasticmapreduce:{action}" for action in steps], [cluster]))
    return statements


def metric_statements() -> Sequence[iam.PolicyStatement]:
    """Telling how old the lake is and what waits for landing (resources/metrics.py)."""
    return [
        on_any("cloudwatch:PutMetricData", conditions={"StringEquals": {"cloudwatch:namespace": NAMESPACE}}),
    ]


_DOMAIN = "amazonaws.com"


def _passes(role: str, to: str) -> iam.PolicyStatement:
    return allow(["iam:PassRole"], [role], {"StringEquals": {"iam:PassedToService": to}})
