"""The local profile: the embedded stack, as `cdc-lake up` runs it.

Here: which resource is which of its engines. Not here: choosing the profile (profile.py).
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import Any

import dagster as dg

from cdc_lake.pipeline.publishing.html_pages import Pages
from infra.local.artifacts.spark_classes import java_options
from infra.local.errors import ArtifactsMissing, StackDown
from infra.local.stack.attach import load_endpoints
from infra.local.stack.endpoints import CAPTURE_ROLE, CONNECT_USER, DATABASE, REGION, Endpoints
from infra.local.stack.state_folder import find_home
from resources.athena import Athena
from resources.aws.metrics import NoMetrics
from resources.connect.kafka_connect import KafkaConnect
from resources.deployment import Deployment
from resources.glue.catalog import GlueCatalog
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres
from resources.spark.local import LocalSpark

JOBS = Path(__file__).parent / "jobs"
CATALOG = "datalake"
_HINT = "Run `cdc-lake up`."
_FIRST_HINT = "The stack in {home} was never started: run `cdc-lake up` (CDC_LAKE_HOME names another folder)."
_NOBODY = "nobody"  # with an empty key, boto3 would look for AWS credentials of the user's
_ATTEMPTS = 6  # where a stack is there, its endpoint may be starting
_NOWHERE = 9  # the discard port, where nothing listens: a connection before the first `up` fails with the hint


def resources() -> dict[str, dg.ConfigurableResource[Any]]:
    """The resources by the names that assets ask for; before the first `cdc-lake up` they lead nowhere, and say so.

    Secrets are bound as environment variables, which this sets for its own process.
    """
    try:
        at: Endpoints | None = load_endpoints()
    except (StackDown, ArtifactsMissing):
        at = None  # the definitions load all the same; what touches a system then says `cdc-lake up`
    secrets = {
        "CDC_LAKE_POSTGRES_PASSWORD": at.postgres_password.get_secret_value() if at else _NOBODY,
        "CDC_LAKE_CONNECT_PASSWORD": at.connect_password.get_secret_value() if at else _NOBODY,
        "CDC_LAKE_S3_ACCESS_KEY": at.s3_access_key if at else _NOBODY,
        "CDC_LAKE_S3_SECRET_KEY": at.s3_secret_key.get_secret_value() if at else _NOBODY,
    }
    os.environ.update(secrets)
    return dict(_made(at, find_home().path))


# Each tick of a sensor asks for each resource; among what is looked at for them are all of Spark's jars.
@lru_cache(maxsize=1)
def _made(at: Endpoints | None, home: Path) -> dict[str, dg.ConfigurableResource[Any]]:
    hint = _HINT if at else _FIRST_HINT.format(home=home)
    access, secret = dg.EnvVar("CDC_LAKE_S3_ACCESS_KEY"), dg.EnvVar("CDC_LAKE_S3_SECRET_KEY")
    nowhere = f"http://127.0.0.1:{_NOWHERE}"
    aws: dict[str, Any] = {
        "endpoint_url": at.aws_endpoint if at else nowhere,
        "region": at.region if at else REGION,
        "access_key": access,
        "secret_key": secret,
        "hint": hint,
        "attempts": _ATTEMPTS if at else 1,
    }
    bucket = at.bucket if at else "none"
    store = ObjectStore(
        bucket=bucket,
        region_name=at.region if at else REGION,
        endpoint_url=at.s3_endpoint if at else nowhere,
        aws_access_key_id=access,
        aws_secret_access_key=secret,
        hint=hint,
    )
    deployment = Deployment(
        profile="local",
        source_host=at.postgres_host if at else "127.0.0.1",
        password_reference=f"${{file:{at.connect_secrets_file}:postgres.password}}" if at else "",
        pages=str(at.home / "dashboards") if at else "",
    )
    return {
        "postgres": Postgres(
            host=at.postgres_host if at else "127.0.0.1",
            port=at.postgres_port if at else _NOWHERE,
            user=at.postgres_user if at else "postgres",
            password=dg.EnvVar("CDC_LAKE_POSTGRES_PASSWORD"),
            database=DATABASE,
            capture_role=CAPTURE_ROLE,
            hint=hint,
        ),
        "kafka": Kafka(bootstrap=at.kafka_bootstrap if at else f"127.0.0.1:{_NOWHERE}", hint=hint),
        "connect": KafkaConnect(
            url=at.connect_url if at else nowhere,
            user=CONNECT_USER,
            password=dg.EnvVar("CDC_LAKE_CONNECT_PASSWORD"),
            hint=hint,
        ),
        "store": store,
        "spark": LocalSpark(
            java_home=str(at.java_home) if at else "",
            jars=str(at.spark_jars) if at else "",
            properties=[str(JOBS / "spark.properties"), str(JOBS / "spark-local.properties")],
            log4j=str(JOBS / "log4j2-local.properties"),
            java_options=java_options(at.java_home, at.spark_jars) if at else "",
            store=store,
            scratch=str(home / "spark") if at else "",
            hint=hint,
        ),
        "glue": GlueCatalog(**aws),
        "athena": Athena(**aws, database=CATALOG, output_location=f"s3://{bucket}/athena-results/", poll_seconds=0.05),
        "deployment": deployment,
        "dashboards": Pages(deployment=deployment),
        "metrics": NoMetrics(),
    }
