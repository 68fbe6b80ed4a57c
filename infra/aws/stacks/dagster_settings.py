"""What the code location is told of the other stacks: environment variables of its task."""

from __future__ import annotations

from infra.aws.stacks.base_stack import LakeStack
from infra.aws.stacks.connect import worker_told
from infra.aws.stacks.shared_parameters import told as told_by
from infra.aws.stacks.spark import CLUSTER_TOLD
from infra.aws.stacks.stack_set import Parts

SERVERLESS_RECORD_BYTES = 8 * 2**20
"""`max.message.bytes` at most: https://docs.aws.amazon.com/msk/latest/developerguide/serverless-config.html."""


def settings(stack: LakeStack, parts: Parts) -> dict[str, str]:
    """The variables of the task in this stack."""
    size, groups = stack.size, parts.network.groups
    told = {
        **instance_settings(stack, parts),
        "CDC_LAKE_PROFILE": "aws",
        "CDC_LAKE_ENVIRONMENT": size.name,
        "CDC_LAKE_BUCKET": parts.storage.lake.bucket_name,
        "CDC_LAKE_ARTIFACTS_BUCKET": parts.storage.artifacts.bucket_name,
        "CDC_LAKE_EVENTS_QUEUE": parts.events.queue.queue_url,
        "CDC_LAKE_SOURCE_HOST": parts.database.cluster.cluster_endpoint.hostname,
        "CDC_LAKE_SOURCE_DATABASE": size.database.name,
        "CDC_LAKE_SOURCE_SECRET": parts.database.replication_secret.secret_name,
        "CDC_LAKE_KAFKA_CLUSTER": parts.streaming.cluster_arn,
        "CDC_LAKE_CONNECT_ROLE": parts.connect.role.role_arn,
        "CDC_LAKE_CONNECT_LOG_GROUP": parts.connect.log_group.log_group_name,
        "CDC_LAKE_CONNECT_SUBNETS": ",".join(subnet.subnet_id for subnet in parts.network.private_subnets),
        # Both: `connect` is let to the source, `kafka` to the brokers.
        "CDC_LAKE_CONNECT_GROUPS": ",".join(group.security_group_id for group in (groups.connect, groups.kafka)),
        "CDC_LAKE_CONNECT_WORKERS": str(size.connect.workers),
        "CDC_LAKE_CONNECT_MCUS": str(size.connect.mcus),
        "CDC_LAKE_EMR_APPLICATION": parts.spark.application.attr_application_id,
        "CDC_LAKE_EMR_JOB_ROLE": parts.spark.roles.jobs.role_arn,
        "CDC_LAKE_CATALOG": size.catalog,
        "CDC_LAKE_ATHENA_WORKGROUP": size.prefix,
        "CDC_LAKE_QUICKSIGHT_ROLE": parts.quicksight.role.role_arn,
    }
    # One variable a pipeline: each connector has its own offsets topic, and so its own worker configuration.
    told |= {
        f"CDC_LAKE_CONNECT_WORKER_{pipeline.upper()}": told_by(stack, parts.connect, worker_told(pipeline))
        for pipeline in size.pipelines
    }
    return told | _given(stack, parts)


def instance_settings(stack: LakeStack, parts: Parts) -> dict[str, str]:
    """Return the variables that image/dagster.yaml names, without the storage's; each service reads that file."""
    region = stack.size.region
    return {
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,  # which boto3 reads where nobody names a region: the manager of logs does not
        "CDC_LAKE_WORK_BUCKET": parts.storage.work.bucket_name,
    }


def _given(stack: LakeStack, parts: Parts) -> dict[str, str]:
    """What an environment has because its size says so."""
    size = stack.size
    found = {
        "CDC_LAKE_CONNECT_PLUGIN": size.connect.plugin,
        "CDC_LAKE_QUICKSIGHT_PRINCIPAL": size.quicksight_principal,
    }
    if size.kafka.kind == "serverless":
        found["CDC_LAKE_KAFKA_RECORD_BYTES"] = str(SERVERLESS_RECORD_BYTES)
    if size.emr.environment:
        found["CDC_LAKE_EMR_ENVIRONMENT"] = f"s3://{parts.storage.artifacts.bucket_name}/{size.emr.environment}"
    if size.emr.cluster is not None:
        cluster = told_by(stack, parts.spark, CLUSTER_TOLD)
        found |= {"CDC_LAKE_EMR_CLUSTER": cluster, "CDC_LAKE_EMR_PYTHON": size.emr.cluster.python}
    return {name: value for name, value in found.items() if value}
