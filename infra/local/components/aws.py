"""The local AWS API (infra/local/aws_api) as a component: its command line, and the Glue database of every stack."""

from __future__ import annotations

import sys
from importlib.metadata import version
from typing import TYPE_CHECKING

from infra.local.components import trino
from infra.local.stack.component import LOOPBACK, Launch, StackContext
from infra.local.stack.endpoints import BUCKET, REGION

if TYPE_CHECKING:
    from mypy_boto3_glue import GlueClient

CATALOG_DATABASE = "datalake"
"""The Glue database that exists in every stack."""


class AwsComponent:
    """The process that serves Glue and Athena."""

    name = "aws"
    port_names: tuple[str, ...] = ("aws",)
    needs: tuple[str, ...] = ()
    uses: tuple[str, ...] = ("trino", "s3")
    """It calls them only for queries."""

    def version(self) -> str:
        """Return the version of moto, which implements the Glue catalog."""
        return f"moto {version('moto')}"

    def prepare(self, context: StackContext) -> None:
        """Create the folder of the catalog."""
        context.folder(self.name)

    def launch(self, context: StackContext) -> Launch:
        """Return the command: this interpreter, with the keys in its environment."""
        return Launch(
            argv=(
                *(sys.executable, "-m", "infra.local.aws_api"),
                *("--port", str(context.ports["aws"])),
                *("--trino-url", f"http://{LOOPBACK}:{context.ports['trino']}"),
                *("--s3-endpoint", f"http://{LOOPBACK}:{context.ports['s3']}"),
                *("--state", str(context.folder(self.name))),
                *("--region", REGION),
            ),
            env={
                "S3_ACCESS_KEY": context.secrets.s3_access_key,
                "S3_SECRET_KEY": context.secrets.s3_secret_key,
                "TRINO_TOKEN": trino.token(context.secrets),
            },
        )

    def probe(self, context: StackContext) -> None:
        """Check that Glue answers."""
        _glue(context).get_databases()

    def after_ready(self, context: StackContext) -> None:
        """Create the Glue database with the default location of its tables."""
        glue = _glue(context)
        database = {"Name": CATALOG_DATABASE, "LocationUri": f"s3://{BUCKET}/warehouse/{CATALOG_DATABASE}/"}
        try:
            glue.create_database(DatabaseInput=database)  # type: ignore[arg-type]
        except glue.exceptions.AlreadyExistsException:
            return


def _glue(context: StackContext) -> GlueClient:
    import boto3  # noqa: PLC0415 - `status` loads this module and does not need boto3
    from botocore.config import Config  # noqa: PLC0415

    return boto3.client(
        "glue",
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
