"""An emulated AWS account on a stack: the variables of the aws profile, and the resources that infra/aws deploys.

The pipeline creates connector, tables, queries and QuickSight's objects.
"""

from __future__ import annotations

from cdc_lake_tests.aws_api.emr.serverless import APPLICATION
from cdc_lake_tests.aws_api.emr.steps import CLUSTER
from cdc_lake_tests.aws_api.served import DATABASE_SECRET, KAFKA_CLUSTER, AwsApi
from cdc_lake_tests.helpers.command_line import CommandLine
from infra.local.stack.attach import load_endpoints
from infra.local.stack.endpoints import Endpoints

ACCOUNT = "123456789012"
OFFSETS = "cdc-lake-connect-offsets"
"""The offsets topic of the stack's worker, which runs MSK Connect's connectors."""


def variables(cli: CommandLine, aws: AwsApi, spark: str) -> dict[str, str]:
    """Return the environment of the aws profile, with boto3's variables; `spark` is emr or emr-serverless.

    Glue, Athena and S3 are the stack's.
    """
    at = load_endpoints(cli.stack.home.path)
    boto3 = {
        "AWS_REGION": at.region,
        "AWS_DEFAULT_REGION": at.region,
        "AWS_ENDPOINT_URL": aws.url,
        "AWS_ENDPOINT_URL_ATHENA": at.aws_endpoint,
        "AWS_ENDPOINT_URL_GLUE": at.aws_endpoint,
        "AWS_ENDPOINT_URL_S3": at.s3_endpoint,
        "AWS_ACCESS_KEY_ID": at.s3_access_key,
        "AWS_SECRET_ACCESS_KEY": at.s3_secret_key.get_secret_value(),
        "AWS_EC2_METADATA_DISABLED": "true",
        "NO_PROXY": "127.0.0.1,localhost",
    }
    environment = {**cli.environment, **boto3}
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
        "CDC_LAKE_SOURCE_SECRET": DATABASE_SECRET,
        "CDC_LAKE_CAPTURE_ROLE": at.capture_role,
        "CDC_LAKE_KAFKA_CLUSTER": KAFKA_CLUSTER,
        "CDC_LAKE_KAFKA_SECURITY": "plaintext",
        "CDC_LAKE_CONNECT_ROLE": _role("connect"),
        "CDC_LAKE_CONNECT_LOG_GROUP": "/cdc-lake/connect",
        "CDC_LAKE_CONNECT_SUBNETS": "subnet-1,subnet-2",
        "CDC_LAKE_CONNECT_GROUPS": "sg-1",
        "CDC_LAKE_CONNECT_PLUGIN": plugin,
        "CDC_LAKE_CONNECT_WORKER_NORTHWIND": aws.msk_connect.plugins.add_worker_configuration(
            "northwind", f"offset.storage.topic={OFFSETS}\n"
        ),
        # The stack's worker has no provider for Secrets Manager.
        "CDC_LAKE_CONNECT_PASSWORD_REFERENCE": f"${{file:{at.connect_secrets_file}:postgres.password}}",
        "CDC_LAKE_CATALOG": "datalake",
        "CDC_LAKE_ATHENA_WORKGROUP": "primary",
        "CDC_LAKE_QUICKSIGHT_ROLE": _role("quicksight"),
        "CDC_LAKE_QUICKSIGHT_PRINCIPAL": f"arn:aws:quicksight:{at.region}:{ACCOUNT}:group/default/analysts",
        "CDC_LAKE_QUICKSIGHT_PAUSE_SECONDS": "0",
    }


def _role(name: str) -> str:
    return f"arn:aws:iam::{ACCOUNT}:role/{name}"


def _plugin(cli: CommandLine, at: Endpoints) -> str:
    folder = str(cli.stack.home.path / "plugins")
    built = cli.run("cdc-lake", "aws", "plugins", "build", "--no-provider", "--out", folder).stdout.strip()
    uploaded = cli.run("cdc-lake", "aws", "plugins", "upload", built, "--bucket", at.bucket, "--region", at.region)
    return uploaded.stdout.strip()
