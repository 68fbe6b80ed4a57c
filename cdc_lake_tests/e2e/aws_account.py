"""What infra/aws creates in an account before a pipeline runs there, created at a stack's AWS endpoint."""

from __future__ import annotations

import base64
from typing import Any

import boto3

from cdc_lake_tests.e2e.conftest import CommandLine
from infra.local.attach import load_endpoints
from infra.local.aws_endpoint.emr import CLUSTER
from infra.local.aws_endpoint.emr_serverless import APPLICATION
from infra.local.endpoints import Endpoints

ACCOUNT = "123456789012"
OFFSETS = "cdc-lake-connect-offsets"
"""The topic of the stack's own worker, which runs what MSK Connect is asked for."""


def variables(cli: CommandLine, spark: str) -> dict[str, str]:
    """The environment of the aws profile, with those of boto3 for the stack; `spark` is emr or emr-serverless."""
    at = load_endpoints(cli.stack.home.path)
    aws = {
        "AWS_REGION": at.region,
        "AWS_DEFAULT_REGION": at.region,
        "AWS_ENDPOINT_URL": at.aws_endpoint,
        "AWS_ENDPOINT_URL_S3": at.s3_endpoint,
        "AWS_ACCESS_KEY_ID": at.s3_access_key,
        "AWS_SECRET_ACCESS_KEY": at.s3_secret_key.get_secret_value(),
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1,localhost",
    }
    environment = {**cli.environment, **aws}
    plugin = _plugin(CommandLine(cli.stack, environment), at)
    emr = (
        {"CDC_LAKE_EMR_CLUSTER": CLUSTER, "CDC_LAKE_EMR_PYTHON": "python3"}
        if spark == "emr"
        else {"CDC_LAKE_EMR_APPLICATION": APPLICATION, "CDC_LAKE_EMR_JOB_ROLE": _role("jobs")}
    )
    return {
        **environment,
        **emr,
        "CDC_LAKE_PROFILE": "aws",
        "CDC_LAKE_POLL_SECONDS": "0.2",
        "CDC_LAKE_BUCKET": at.bucket,
        "CDC_LAKE_WORK_BUCKET": at.bucket,
        "CDC_LAKE_ARTIFACTS_BUCKET": at.bucket,
        "CDC_LAKE_SOURCE_HOST": at.postgres_host,
        "CDC_LAKE_SOURCE_PORT": str(at.postgres_port),
        "CDC_LAKE_SOURCE_DATABASE": at.postgres_database,
        "CDC_LAKE_SOURCE_SECRET": at.postgres_secret,
        "CDC_LAKE_CAPTURE_ROLE": at.capture_role,
        "CDC_LAKE_KAFKA_CLUSTER": at.kafka_cluster,
        "CDC_LAKE_KAFKA_SECURITY": "plaintext",
        "CDC_LAKE_CONNECT_ROLE": _role("connect"),
        "CDC_LAKE_CONNECT_LOG_GROUP": "/cdc-lake/connect",
        "CDC_LAKE_CONNECT_SUBNETS": "subnet-1,subnet-2",
        "CDC_LAKE_CONNECT_GROUPS": "sg-1",
        "CDC_LAKE_CONNECT_PLUGIN": plugin,
        "CDC_LAKE_CONNECT_WORKER_NORTHWIND": _workers(at),
        # The stack's worker has no provider for Secrets Manager.
        "CDC_LAKE_CONNECT_PASSWORD_REFERENCE": f"${{file:{at.connect_secrets_file}:postgres.password}}",
        "CDC_LAKE_CATALOG": "datalake",
        "CDC_LAKE_ATHENA_WORKGROUP": "primary",
        "CDC_LAKE_QUICKSIGHT_ROLE": _role("quicksight"),
        "CDC_LAKE_QUICKSIGHT_PRINCIPAL": f"arn:aws:quicksight:{at.region}:{ACCOUNT}:group/default/analysts",
        "CDC_LAKE_QUICKSIGHT_PAUSE_SECONDS": "0",
    }


def client(at: Endpoints, service: str) -> Any:  # noqa: ANN401 - not all have stubs among the dependencies
    """boto3's client of the endpoint."""
    return boto3.client(  # type: ignore[call-overload]
        service,
        endpoint_url=at.aws_endpoint,
        region_name=at.region,
        aws_access_key_id=at.s3_access_key,
        aws_secret_access_key=at.s3_secret_key.get_secret_value(),
    )


def _role(name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


def _plugin(cli: CommandLine, at: Endpoints) -> str:
    folder = str(cli.stack.home.path / "plugins")
    built = cli.run("cdc-lake", "aws", "plugins", "build", "--no-provider", "--out", folder).stdout.strip()
    uploaded = cli.run("cdc-lake", "aws", "plugins", "upload", built, "--bucket", at.bucket, "--region", at.region)
    return uploaded.stdout.strip()


def _workers(at: Endpoints) -> str:
    kafkaconnect = client(at, "kafkaconnect")
    for each in kafkaconnect.list_worker_configurations()["workerConfigurations"]:
        if each["name"] == "northwind":
            return str(each["workerConfigurationArn"])
    content = base64.b64encode(f"offset.storage.topic={OFFSETS}\n".encode()).decode()
    made = kafkaconnect.create_worker_configuration(name="northwind", propertiesFileContent=content)
    return str(made["workerConfigurationArn"])
