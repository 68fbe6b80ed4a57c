"""Policy statements that several roles share: for objects, topics, tables and secrets."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from infra.aws.iam.policies import allow, arn, kafka_arn, secret_arn
from infra.aws.sizes.sizes import Size

_LIST = ["s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads"]
_PUT = ["s3:AbortMultipartUpload", "s3:ListMultipartUploadParts", "s3:PutObject"]
DESCRIBE_TOPIC = ["DescribeTopic", "DescribeTopicDynamicConfiguration"]
"""The actions of `kafka-cluster` that describe a topic: its offsets and its settings."""
_TABLES = ["GetDatabase", "GetDatabases", "GetPartition", "GetPartitions", "GetTable", "GetTables"]


def read_objects(bucket: s3.IBucket, *prefixes: str) -> list[iam.PolicyStatement]:
    """Return the permissions to list a bucket and to read objects below the prefixes (default: all objects)."""
    return [allow(_LIST, [bucket.bucket_arn]), allow(["s3:GetObject"], _below(bucket, prefixes))]


def put_objects(bucket: s3.IBucket, *prefixes: str) -> list[iam.PolicyStatement]:
    """Return the permissions to read and put objects below the prefixes (default: all objects)."""
    return [allow(_LIST, [bucket.bucket_arn]), allow(["s3:GetObject", *_PUT], _below(bucket, prefixes))]


def write_objects(bucket: s3.IBucket, *prefixes: str) -> list[iam.PolicyStatement]:
    """Return the permissions of put_objects() and the permission to delete objects, but not their old versions."""
    return [*put_objects(bucket, *prefixes), allow(["s3:DeleteObject"], _below(bucket, prefixes))]


def connect_to_kafka(cluster: str) -> iam.PolicyStatement:
    """Return the permission to connect to a Kafka cluster."""
    return allow(["kafka-cluster:Connect", "kafka-cluster:DescribeCluster"], [cluster])


def read_topics(stack: Stack, size: Size, cluster: str, groups: Sequence[str]) -> list[iam.PolicyStatement]:
    """Return the permissions to read the pipelines' topics as a member of the consumer groups."""
    topics = [kafka_arn(stack, cluster, "topic", f"{prefix}.*") for prefix in size.topic_prefixes]
    return [
        connect_to_kafka(cluster),
        allow([f"kafka-cluster:{action}" for action in (*DESCRIBE_TOPIC, "ReadData")], topics),
        allow(
            ["kafka-cluster:AlterGroup", "kafka-cluster:DescribeGroup"],
            [kafka_arn(stack, cluster, "group", group) for group in groups],
        ),
    ]


def write_topics(stack: Stack, size: Size, cluster: str) -> list[iam.PolicyStatement]:
    """Return the permissions to write the pipelines' topics, without creating them."""
    topics = [kafka_arn(stack, cluster, "topic", f"{prefix}.*") for prefix in size.topic_prefixes]
    return [
        allow(["kafka-cluster:WriteData"], topics),
        allow(["kafka-cluster:WriteDataIdempotently"], [cluster]),
    ]


def read_tables(stack: Stack, catalog: Sequence[str]) -> iam.PolicyStatement:
    """Return the permission to read tables' definitions.

    Spark's Hive client requests the database `default` and its functions at every start.
    """
    default = [arn(stack, "glue", each) for each in ("database/default", "userDefinedFunction/*")]
    return allow([f"glue:{action}" for action in (*_TABLES, "GetUserDefinedFunctions")], [*catalog, *default])


def read_secret(secret_arn: str) -> iam.PolicyStatement:
    """Return the permission to read one secret."""
    return allow(["secretsmanager:GetSecretValue"], [secret_arn])


def read_user_secrets(stack: Stack, *secrets: str | None) -> list[iam.PolicyStatement]:
    """Return the permissions to read secrets that the user stored, by name; None stands for one that is not used."""
    return [read_secret(secret_arn(stack, secret)) for secret in secrets if secret]


def grant(role: iam.Role, *statements: iam.PolicyStatement) -> None:
    """Add statements to a role."""
    for statement in statements:
        role.add_to_policy(statement)


def _below(bucket: s3.IBucket, prefixes: Sequence[str]) -> list[str]:
    return [bucket.arn_for_objects(f"{prefix}*") for prefix in prefixes or ("",)]
