"""Environment variables of the code location's task, with values of the other stacks."""

from __future__ import annotations

from infra.aws.sizes.sizes import Size
from infra.aws.stacks.connect import worker_parameter
from infra.aws.stacks.shared.base_stack import LakeStack
from infra.aws.stacks.shared.shared_parameters import shared_value
from infra.aws.stacks.shared.stack_set import StackSet
from infra.aws.stacks.spark import CLUSTER_PARAMETER
from resources.aws.secrets import DatabaseSecret

SERVERLESS_RECORD_BYTES = 8 * 2**20
"""The maximum of `max.message.bytes` on MSK Serverless:
https://docs.aws.amazon.com/msk/latest/developerguide/serverless-config.html."""


def settings(stack: LakeStack, stacks: StackSet) -> dict[str, str]:
    """Return the environment variables of the code location's task."""
    size, groups = stack.size, stacks.network.groups
    variables = {
        **instance_settings(stack, stacks),
        "CDC_LAKE_PROFILE": "aws",
        "CDC_LAKE_ENVIRONMENT": size.name,
        "CDC_LAKE_BUCKET": stacks.storage.lake.bucket_name,
        "CDC_LAKE_ARTIFACTS_BUCKET": stacks.storage.artifacts.bucket_name,
        "CDC_LAKE_EVENTS_QUEUE": stacks.events.queue.queue_url,
        "CDC_LAKE_SOURCE_HOST": stacks.database.cluster.cluster_endpoint.hostname,
        "CDC_LAKE_SOURCE_DATABASE": size.database.name,
        "CDC_LAKE_SOURCE_SECRET": stacks.database.replication_secret.secret_name,
        "CDC_LAKE_KAFKA_CLUSTER": stacks.streaming.cluster_arn,
        "CDC_LAKE_CONNECT_ROLE": stacks.connect.role.role_arn,
        "CDC_LAKE_CONNECT_LOG_GROUP": stacks.connect.log_group.log_group_name,
        "CDC_LAKE_CONNECT_SUBNETS": ",".join(subnet.subnet_id for subnet in stacks.network.private_subnets),
        # `connect` is allowed to connect to the source, `kafka` to the brokers.
        "CDC_LAKE_CONNECT_GROUPS": ",".join(group.security_group_id for group in (groups.connect, groups.kafka)),
        "CDC_LAKE_CONNECT_WORKERS": str(size.connect.workers),
        "CDC_LAKE_CONNECT_MCUS": str(size.connect.mcus),
        "CDC_LAKE_EMR_APPLICATION": stacks.spark.application.attr_application_id,
        "CDC_LAKE_EMR_JOB_ROLE": stacks.spark.roles.jobs.role_arn,
        "CDC_LAKE_CATALOG": size.glue_databases[0],
        "CDC_LAKE_ATHENA_WORKGROUP": size.prefix,
        "CDC_LAKE_QUICKSIGHT_ROLE": stacks.quicksight.role.role_arn,
    }
    # Each connector has its own offsets topic and therefore its own worker configuration.
    variables |= {
        f"CDC_LAKE_CONNECT_WORKER_{pipeline.upper()}": shared_value(stack, stacks.connect, worker_parameter(pipeline))
        for pipeline in size.pipelines
    }
    return variables | _optional_settings(stack, stacks)


def instance_settings(stack: LakeStack, stacks: StackSet) -> dict[str, str]:
    """Return the variables in image/dagster.yaml, which each service reads, except those of the PostgreSQL storage."""
    region = stack.size.region
    return {
        "AWS_REGION": region,
        "AWS_DEFAULT_REGION": region,  # for boto3: the compute log manager passes no region
        "CDC_LAKE_WORK_BUCKET": stacks.storage.work.bucket_name,
    }


def _optional_settings(stack: LakeStack, stacks: StackSet) -> dict[str, str]:
    """Return the variables for optional fields of the size that are set."""
    size = stack.size
    found = {
        "CDC_LAKE_CONNECT_PLUGIN": size.connect.plugin,
        "CDC_LAKE_QUICKSIGHT_PRINCIPAL": size.quicksight_principal,
        "CDC_LAKE_HASH_SALT_SECRET": size.hash_salt_secret,
        **registry_settings(size),
    }
    if size.kafka.kind == "serverless":
        found["CDC_LAKE_KAFKA_RECORD_BYTES"] = str(SERVERLESS_RECORD_BYTES)
    if size.emr.environment:
        found["CDC_LAKE_EMR_ENVIRONMENT"] = f"s3://{stacks.storage.artifacts.bucket_name}/{size.emr.environment}"
    if size.emr.cluster is not None:
        cluster = shared_value(stack, stacks.spark, CLUSTER_PARAMETER)
        found |= {"CDC_LAKE_EMR_CLUSTER": cluster, "CDC_LAKE_EMR_PYTHON": size.emr.cluster.python}
    return {name: value for name, value in found.items() if value}


def registry_settings(size: Size) -> dict[str, str | None]:
    """Return the variables of the schema registry, None for a field that the size omits; empty without a registry."""
    registry = size.registry
    if registry is None:
        return {}
    found = {
        "CDC_LAKE_REGISTRY_URL": registry.url,
        "CDC_LAKE_REGISTRY_CONVERTER_URL": registry.converter_url,
        "CDC_LAKE_REGISTRY_SECRET": registry.secret,
    }
    if registry.secret:
        secret = DatabaseSecret(region=size.region, secret_id=registry.secret)
        found["CDC_LAKE_CONNECT_REGISTRY_REFERENCE"] = secret.connect_reference(registry.converter_member)
    return found
