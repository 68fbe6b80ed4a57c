"""The local profile: the resources of the local stack that `cdc-lake up` starts."""

from __future__ import annotations

import os
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any

import dagster as dg

from cdc_lake import jobs
from cdc_lake.pipeline.publishing.html_pages import Pages
from cdc_lake.run_processes import SPARK_SERVER_OWNER
from infra.artifacts.spark_classes import java_options
from infra.errors import ArtifactsMissing, StackDown
from infra.local.stack.attach import load_endpoints
from infra.local.stack.endpoints import CAPTURE_ROLE, CONNECT_USER, DATABASE, REGION, Endpoints
from infra.local.stack.state_folder import find_home
from resources.athena import Athena
from resources.aws.metrics import NoMetrics
from resources.connect.kafka_connect import KafkaConnect
from resources.deployment import Deployment
from resources.glue.catalog import GlueCatalog
from resources.kafka.registry import Registry
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres
from resources.spark.job_server.client import SparkServerClient
from resources.spark.local import LocalSpark

CATALOG = "datalake"
_HINT = "Run `cdc-lake up`."
_FIRST_HINT = "The stack in {home} was never started. Run `cdc-lake up` (CDC_LAKE_HOME names another folder)."
_NO_CREDENTIALS = "nobody"  # with an empty key, boto3 would search for the user's AWS credentials
_SALT = "CDC_LAKE_HASH_SALT"
SPARK_SOCKET = "CDC_LAKE_SPARK_SOCKET"
"""The environment variable with the Unix socket of the Spark server. `cdc-lake dev` sets it for its runs."""
_ATTEMPTS = 6  # the endpoint of an existing stack may be starting
_CLOSED_PORT = 9  # the discard port, where nothing listens: a connection before the first `up` fails with the hint


def resources() -> dict[str, dg.ConfigurableResource[Any]]:
    """Return the resources, keyed by the names of the assets' parameters.

    Before the first `cdc-lake up`, each request fails with a hint to run it. Secrets are referenced as environment
    variables, which this function sets for its own process.
    """
    try:
        endpoints: Endpoints | None = load_endpoints()
    except (StackDown, ArtifactsMissing):
        endpoints = None  # the definitions load nevertheless; requests fail with a hint
    secrets = {
        "CDC_LAKE_POSTGRES_PASSWORD": endpoints.postgres_password.get_secret_value() if endpoints else _NO_CREDENTIALS,
        "CDC_LAKE_CONNECT_PASSWORD": endpoints.connect_password.get_secret_value() if endpoints else _NO_CREDENTIALS,
        "CDC_LAKE_S3_ACCESS_KEY": endpoints.s3_access_key if endpoints else _NO_CREDENTIALS,
        "CDC_LAKE_S3_SECRET_KEY": endpoints.s3_secret_key.get_secret_value() if endpoints else _NO_CREDENTIALS,
    }
    if endpoints and endpoints.registry_authorization:
        secrets["CDC_LAKE_REGISTRY_AUTHORIZATION"] = endpoints.registry_authorization.get_secret_value()
    os.environ.update(secrets)
    return dict(_made(endpoints, find_home().path))


def _registry(at: Endpoints | None) -> Registry | None:
    """Return the registry; None if the stack has never started it."""
    if at is None or at.registry_ccompat_url is None or at.registry_authorization is None:
        return None
    return Registry(url=at.registry_ccompat_url, authorization=dg.EnvVar("CDC_LAKE_REGISTRY_AUTHORIZATION"))


def _served(spark: LocalSpark, home: Path) -> LocalSpark | SparkServerClient:
    """Return Spark of the server that the variable SPARK_SOCKET names; without it, Spark in this process."""
    path = os.environ.get(SPARK_SOCKET)
    if not path:
        return spark
    project = Path(__file__).parents[1]
    code = [str(project / package) for package in ("cdc_lake", "resources")]
    command = [sys.executable, "-m", "cdc_lake.spark_server"]
    return SparkServerClient(
        path=path,
        owner=int(os.environ.get(SPARK_SERVER_OWNER, os.getpid())),
        spark=spark,
        log=str(home / "logs" / "spark-server.log"),
        command=command,
        code=code,
    )


# Cached, because each sensor tick creates all resources, which includes listing Spark's jars.
@lru_cache(maxsize=1)
def _made(at: Endpoints | None, home: Path) -> dict[str, dg.ConfigurableResource[Any]]:
    hint = _HINT if at else _FIRST_HINT.format(home=home)
    access, secret = dg.EnvVar("CDC_LAKE_S3_ACCESS_KEY"), dg.EnvVar("CDC_LAKE_S3_SECRET_KEY")
    nowhere = f"http://127.0.0.1:{_CLOSED_PORT}"
    aws: dict[str, Any] = {
        "endpoint_url": at.aws_endpoint if at else nowhere,
        "region": at.region if at else REGION,
        "access_key": access,
        "secret_key": secret,
        "hint": hint,
        "attempts": _ATTEMPTS if at else 1,
    }
    bucket = at.bucket if at else "none"
    store = ObjectStore(**{**aws, "endpoint_url": at.s3_endpoint if at else nowhere}, bucket=bucket)
    deployment = Deployment(
        profile="local",
        source_host=at.postgres_host if at else "127.0.0.1",
        password_reference=f"${{file:{at.connect_secrets_file}:postgres.password}}" if at else "",
        registry_url=(at.registry_core_url or "") if at else "",
        registry_authorization=f"${{file:{at.registry_secrets_file}:registry.authorization}}" if at else "",
        pages=str(at.home / "dashboards") if at else "",
    )
    spark = LocalSpark(
        java_home=str(at.java_home) if at else "",
        jars=str(at.spark_jars) if at else "",
        properties=[str(jobs.FOLDER / "spark.properties"), str(jobs.FOLDER / "spark-local.properties")],
        log4j=str(jobs.FOLDER / "log4j2-local.properties"),
        java_options=java_options(at.java_home, at.spark_jars) if at else "",
        store=store,
        scratch=str(home / "spark") if at else "",
        hint=hint,
    )
    return {
        "postgres": Postgres(
            host=at.postgres_host if at else "127.0.0.1",
            port=at.postgres_port if at else _CLOSED_PORT,
            user=at.postgres_user if at else "postgres",
            password=dg.EnvVar("CDC_LAKE_POSTGRES_PASSWORD"),
            database=DATABASE,
            capture_role=CAPTURE_ROLE,
            hash_salt=dg.EnvVar(_SALT) if _SALT in os.environ else "",
            hint=hint,
        ),
        "kafka": Kafka(
            bootstrap=at.kafka_bootstrap if at else f"127.0.0.1:{_CLOSED_PORT}", registry=_registry(at), hint=hint
        ),
        "connect": KafkaConnect(
            url=at.connect_url if at else nowhere,
            user=CONNECT_USER,
            password=dg.EnvVar("CDC_LAKE_CONNECT_PASSWORD"),
            hint=hint,
        ),
        "store": store,
        "spark": _served(spark, home),
        "glue": GlueCatalog(**aws),
        "athena": Athena(**aws, database=CATALOG, output_location=f"s3://{bucket}/athena-results/", poll_seconds=0.05),
        "deployment": deployment,
        "dashboards": Pages(deployment=deployment),
        "metrics": NoMetrics(),
    }
