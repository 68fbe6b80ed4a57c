"""The local AWS-API endpoint: Glue, Athena, MSK, MSK Connect and Secrets Manager for every part of the stack.

Here: its command line, and the Glue database and the secret that the stack promises.
Not here: what it answers (infra/local/aws_endpoint).
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from infra.local.component import LOOPBACK, Launch, StackContext
from infra.local.components import trino
from infra.local.components.postgres import SUPERUSER
from infra.local.endpoints import BUCKET, DATABASE, DATABASE_SECRET, KAFKA_CLUSTER, REGION

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

CATALOG_DATABASE = "datalake"
"""The Glue database that exists in every stack."""


class AwsComponent:
    """The process that answers for AWS."""

    name = "aws"
    port_names: tuple[str, ...] = ("aws",)
    # Trino, S3, Connect and Kafka are asked when a query or a connector comes.
    needs: tuple[str, ...] = ()

    def version(self) -> str:
        """The version of moto, whose server and Glue it uses."""
        return f"moto {version('moto')}"

    def prepare(self, context: StackContext) -> None:
        """Make the folder of the catalog."""
        context.folder(self.name)

    def launch(self, context: StackContext) -> Launch:
        """The endpoint, with this interpreter; the keys are in its environment."""
        return Launch(
            argv=(
                *(sys.executable, "-m", "infra.local.aws_endpoint"),
                *("--port", str(context.ports["aws"])),
                *("--trino-url", f"http://{LOOPBACK}:{context.ports['trino']}"),
                *("--s3-endpoint", f"http://{LOOPBACK}:{context.ports['s3']}"),
                *("--connect-url", f"http://{LOOPBACK}:{context.ports['connect']}"),
                *("--kafka-bootstrap", f"{LOOPBACK}:{context.ports['kafka']}"),
                *("--kafka-cluster", KAFKA_CLUSTER),
                *("--state", str(context.folder(self.name))),
                *("--region", REGION),
            ),
            env={
                "S3_ACCESS_KEY": context.secrets.s3_access_key,
                "S3_SECRET_KEY": context.secrets.s3_secret_key,
                "CONNECT_PASSWORD": context.secrets.connect_password,
                "TRINO_TOKEN": trino.token(context.secrets),
            },
        )

    def probe(self, context: StackContext) -> None:
        """Return once Glue answers."""
        _glue(context).get_databases()

    def after_ready(self, context: StackContext) -> None:
        """Make the database, with the place for tables that name none, and the secret, which is kept in memory only."""
        _put_secret(context)
        glue = _glue(context)
        wanted = {"Name": CATALOG_DATABASE, "LocationUri": f"s3://{BUCKET}/warehouse/{CATALOG_DATABASE}/"}
        try:
            glue.create_database(DatabaseInput=wanted)  # type: ignore[arg-type]
        except glue.exceptions.AlreadyExistsException:
            return


def _put_secret(context: StackContext) -> None:
    """PostgreSQL's password, in the form that RDS writes."""
    client = _client(context, "secretsmanager")
    login = {
        "engine": "postgres",
        "host": LOOPBACK,
        "port": context.ports["postgres"],
        "username": SUPERUSER,
        "password": context.secrets.postgres_password,
        "dbname": DATABASE,
    }
    try:
        client.create_secret(Name=DATABASE_SECRET, SecretString=json.dumps(login))
    except client.exceptions.ResourceExistsException:
        client.put_secret_value(SecretId=DATABASE_SECRET, SecretString=json.dumps(login))


def _glue(context: StackContext) -> GlueClient:
    return _client(context, "glue")  # type: ignore[no-any-return]


def _client(context: StackContext, service: str) -> Any:  # noqa: ANN401 - not all have stubs among the dependencies
    import boto3  # noqa: PLC0415 - `status` loads this module and needs none of it
    from botocore.config import Config  # noqa: PLC0415

    session: Any = boto3
    return session.client(
        service,
        endpoint_url=f"http://{LOOPBACK}:{context.ports['aws']}",
        region_name=REGION,
        aws_access_key_id=context.secrets.s3_access_key,
        aws_secret_access_key=context.secrets.s3_secret_key,
        config=Config(
            connect_timeout=2,
            read_timeout=10,
            retries={"mode": "standard", "total_max_attempts": 1},
            proxies={},
        ),
    )
