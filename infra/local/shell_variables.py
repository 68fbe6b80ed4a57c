"""The environment variables with which other tools connect to the stack."""

from __future__ import annotations

from infra.local.stack.endpoints import Endpoints


def shell_variables(endpoints: Endpoints, with_secrets: bool) -> dict[str, str]:
    """Return the variables that psql, the AWS command line and SDKs read; with secrets only if requested."""
    variables = {
        "PGHOST": endpoints.postgres_host,
        "PGPORT": str(endpoints.postgres_port),
        "PGUSER": endpoints.postgres_user,
        "PGDATABASE": endpoints.postgres_database,
        "AWS_REGION": endpoints.region,
        "AWS_DEFAULT_REGION": endpoints.region,
        "AWS_ENDPOINT_URL": endpoints.aws_endpoint,
        "AWS_ENDPOINT_URL_S3": endpoints.s3_endpoint,
        "CDC_LAKE_HOME": str(endpoints.home),
        "DAGSTER_HOME": str(endpoints.home / "dagster"),
        "KAFKA_BOOTSTRAP": endpoints.kafka_bootstrap,
        "CONNECT_URL": endpoints.connect_url,
        "CONNECT_USER": endpoints.connect_user,
    }
    if with_secrets:
        variables |= {
            "PGPASSWORD": endpoints.postgres_password.get_secret_value(),
            "CONNECT_PASSWORD": endpoints.connect_password.get_secret_value(),
            "AWS_ACCESS_KEY_ID": endpoints.s3_access_key,
            "AWS_SECRET_ACCESS_KEY": endpoints.s3_secret_key.get_secret_value(),
        }
    return variables
