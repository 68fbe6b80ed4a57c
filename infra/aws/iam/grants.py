"""What several roles are allowed: objects, topics, tables, secrets."""

from __future__ import annotations

from collections.abc import Sequence

from aws_cdk import Stack
from aws_cdk import aws_iam as iam
from aws_cdk import aws_s3 as s3

from infra.aws.iam.policies import allow, arn, kafka_arn
from infra.aws.sizes.sizes import Size

_LIST = ["s3:GetBucketLocation", "s3:ListBucket", "s3:ListBucketMultipartUploads"]
_PUT = ["s3:AbortMultipartUpload", "s3:ListMultipartUploadParts", "s3:PutObject"]
LOOK = ["DescribeTopic", "DescribeTopicDynamicConfiguration"]
"""At a Kafka topic: what it is, its offsets, its settings."""
_TABLES = ["GetDatabase", "GetDatabases", "GetPartition", "GetPartitions", "GetTable", "GetTables"]


def reads(bucket: s3.IBucket, *prefixes: str) -> list[iam.PolicyStatement]:
    """Listing a bucket and reading its objects below the prefixes (all without)."""
    return [allow(_LIST, [bucket.bucket_arn]), allow(["s3:GetObject"], _below(bucket, prefixes))]


def puts(bucket: s3.IBucket, *prefixes: str) -> list[iam.PolicyStatement]:
    """Reading and putting objects below the prefixes (all without)."""
    return [allow(_LIST, [bucket.bucket_arn]), allow(["s3:GetObject", *_PUT], _below(bucket, prefixes))]


def writes(bucket: s3.IBucket, *prefixes: str) -> list[iam.PolicyStatement]:
    """What puts() allows, and deleting. Old versions stay out of reach."""
    return [*puts(bucket, *prefixes), allow(["s3:DeleteObject"], _below(bucket, prefixes))]


def connects(cluster: str) -> iam.PolicyStatement:
    """Speaking to a Kafka cluster at all."""
    return allow(["kafka-cluster:Connect", "kafka-cluster:DescribeCluster"], [cluster])


def reads_topics(stack: Stack, size: Size, cluster: str, groups: Sequence[str]) -> list[iam.PolicyStatement]:
    """Reading the pipelines' topics, as a member of the consumer groups."""
    topics = [kafka_arn(stack, cluster, "topic", f"{prefix}.*") for prefix in size.topic_prefixes]
    return [
        connects(cluster),
        allow([f"kafka-cluster:{action}" for action in (*LOOK, "ReadData")], topics),
        allow(
            ["kafka-cluster:AlterGroup", "kafka-cluster:DescribeGroup"],
            [kafka_arn(stack, cluster, "group", group) for group in groups],
        ),
    ]


def reads_tables(stack: Stack, catalog: Sequence[str]) -> iam.PolicyStatement:
    """Looking up tables. Spark's Hive client asks for the database `default` and for functions at every start."""
    default = [arn(stack, "glue", each) for each in ("database/default", "userDefinedFunction/*")]
    return allow([f"glue:{action}" for action in (*_TABLES, "GetUserDefinedFunctions")], [*catalog, *default])


def reads_secret(secret_arn: str) -> iam.PolicyStatement:
    """Reading one secret."""
    return allow(["secretsmanager:GetSecretValue"], [secret_arn])


def grant(role: iam.Role, *statements: iam.PolicyStatement) -> None:
    """Give a role statements."""
    for statement in statements:
        role.add_to_policy(statement)


def _below(bucket: s3.IBucket, prefixes: Sequence[str]) -> list[str]:
    return [bucket.arn_for_objects(f"{prefix}*") for prefix in prefixes or ("",)]
