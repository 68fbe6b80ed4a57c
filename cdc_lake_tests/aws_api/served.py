"""Serves the services of this package over a running stack, in the process of the test."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from botocore.config import Config
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from cdc_lake_tests.aws_api.emr.runs import Runs
from cdc_lake_tests.aws_api.emr.serverless import EmrServerless
from cdc_lake_tests.aws_api.emr.spark_submit import spark_submit
from cdc_lake_tests.aws_api.emr.steps import EmrSteps
from cdc_lake_tests.aws_api.kafkaconnect.connectors import MskConnect
from cdc_lake_tests.aws_api.quicksight.ingestions import Ingestions
from cdc_lake_tests.aws_api.quicksight.objects import Objects
from cdc_lake_tests.aws_api.quicksight.service import quicksight_operations, quicksight_service
from cdc_lake_tests.aws_api.rest_protocol import RestService
from cdc_lake_tests.fakes.server import serving
from infra.local.aws_api.athena.trino_engine import Trino
from infra.local.aws_api.server import Application
from infra.local.aws_api.signatures import SigningKeys
from infra.local.components.trino import token
from infra.local.stack.endpoints import Endpoints
from infra.local.stack.stack_secrets import load
from infra.local.stack.state_folder import StackHome
from resources.connect.kafka_connect import KafkaConnect

KAFKA_CLUSTER = "arn:aws:kafka:us-east-1:123456789012:cluster/cdc-lake/6d736b2d-0000-4000-8000-6c6f63616c00-1"
DATABASE_SECRET = "cdc-lake/postgres"


@dataclass(frozen=True)
class AwsApi:
    """The services at a URL, and what they contain."""

    url: str
    msk_connect: MskConnect
    quicksight: Objects
    steps: Runs
    job_runs: Runs


@contextmanager
def aws_api(at: Endpoints, state: Path) -> Iterator[AwsApi]:
    """Serve all services over the stack, with its keys; jobs write their logs to `state`."""
    keys = SigningKeys(at.s3_access_key, at.s3_secret_key.get_secret_value())
    user, password = at.connect_login
    msk_connect = MskConnect(KafkaConnect(url=at.connect_url, user=user, password=password), at.region)
    moto = DomainDispatcherApplication(create_backend_app)
    objects = Objects(at.region)
    trino = Trino(at.trino_url, token(load(StackHome(at.home).secrets_file)))
    services: dict[str, Application] = {
        "kafka": RestService("kafka", {"GetBootstrapBrokers": lambda _: {"bootstrapBrokerString": at.kafka_bootstrap}}),
        "kafkaconnect": msk_connect.service,
        "monitoring": moto,
        "quicksight": quicksight_service(quicksight_operations(objects, Ingestions(objects, trino))),
        "secretsmanager": moto,
        "sts": moto,
    }
    with serving(services, at.region, keys) as url:
        execute = spark_submit(at, url, client(at, at.s3_endpoint, "s3"), state)
        steps, job_runs = Runs(execute, at_once=1), Runs(execute, at_once=2)
        services["elasticmapreduce"] = EmrSteps(steps, f"s3://{at.bucket}/emr-logs/").service
        services["emr-serverless"] = EmrServerless(job_runs).service
        _put_database_secret(at, url)
        try:
            yield AwsApi(url, msk_connect, objects, steps, job_runs)
        finally:
            steps.close()
            job_runs.close()


def client(at: Endpoints, url: str, service: str) -> Any:  # noqa: ANN401 - not all have stubs among the dependencies
    """Return boto3's client with the stack's keys."""
    make: Any = boto3.client
    return make(
        service,
        endpoint_url=url,
        region_name=at.region,
        aws_access_key_id=at.s3_access_key,
        aws_secret_access_key=at.s3_secret_key.get_secret_value(),
        config=Config(proxies={}, s3={"addressing_style": "path"}),
    )


def _put_database_secret(at: Endpoints, url: str) -> None:
    """Store the login of the stack's PostgreSQL in the form that RDS writes."""
    login = {"username": at.postgres_user, "password": at.postgres_password.get_secret_value()}
    secrets = client(at, url, "secretsmanager")
    try:
        secrets.create_secret(Name=DATABASE_SECRET, SecretString=json.dumps(login))
    except secrets.exceptions.ResourceExistsException:  # moto keeps it for the process, which may serve a second stack
        secrets.put_secret_value(SecretId=DATABASE_SECRET, SecretString=json.dumps(login))
