"""The aws profile: Aurora, MSK, MSK Connect, S3, EMR, Glue, Athena and QuickSight, named by environment variables.

aws_settings.py reads the variables. Credentials, endpoints and retry modes come from boto3's own environment variables:
tests set AWS_ENDPOINT_URL and keys to use another endpoint.
"""

from __future__ import annotations

from typing import Any

import dagster as dg

from cdc_lake import jobs
from cdc_lake.aws_settings import AwsSettings
from cdc_lake.contract.secret_fields import HASH_SALT, REGISTRY_AUTHORIZATION, SOURCE_PASSWORD
from cdc_lake.jobs.remote import job_call
from cdc_lake.pipeline.pipeline import connector_name
from cdc_lake.pipeline.publishing.quicksight import QuickSightDashboards
from infra.artifacts.artifacts import jars
from resources.athena import Athena
from resources.aws.metrics import CloudWatchMetrics, NoMetrics
from resources.aws.secrets import DatabaseSecret
from resources.aws.sqs import Sqs
from resources.connect.kafka_connect import KafkaConnect
from resources.deployment import Deployment
from resources.glue.catalog import GlueCatalog
from resources.kafka import msk_iam
from resources.kafka.msk import Msk
from resources.kafka.registry import Registry
from resources.kafka.resource import Kafka
from resources.msk_connect.connector_request import ConnectSettings, Plugin, WorkerConfiguration
from resources.msk_connect.resource import MskConnect
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres
from resources.quicksight.resource import QuickSight
from resources.spark.emr.cluster_steps import EmrSteps
from resources.spark.emr.code import EmrCode
from resources.spark.emr.job_files import JobFiles
from resources.spark.emr.serverless import EmrServerlessSpark

_SOURCE_HINT = (
    "Check CDC_LAKE_SOURCE_HOST and CDC_LAKE_SOURCE_SECRET, and that the database's security group allows connections "
    "from here."
)
_KAFKA_HINT = "Check CDC_LAKE_KAFKA_CLUSTER, and that the cluster's security group allows its plaintext port from here."
_CONNECT_HINT = "Check CDC_LAKE_CONNECT_URL, CDC_LAKE_CONNECT_USER and CDC_LAKE_CONNECT_PASSWORD."
_DEBEZIUM = "io.debezium.connector.postgresql.PostgresConnector"


def resources() -> dict[str, dg.ConfigurableResource[Any]]:
    """Return the resources, keyed by the names of the assets' parameters.

    Raises ResourceError if a variable is missing or not valid.
    """
    settings = AwsSettings.from_environment()
    secret = DatabaseSecret(region=settings.region, secret_id=settings.source_secret)
    kafka = Kafka(
        cluster=Msk(region=settings.region, cluster_arn=settings.kafka_cluster),
        security=settings.kafka_security,
        region=settings.region,
        registry=_registry(settings),
        hint="" if settings.kafka_security == "iam" else _KAFKA_HINT,  # with IAM, the resource has a hint
    )
    found: dict[str, dg.ConfigurableResource[Any]] = {
        "postgres": Postgres(
            host=settings.source_host,
            port=settings.source_port,
            user="",
            secret=secret,
            database=settings.source_database,
            capture_role=settings.capture_role,
            salt_secret=_secret(settings, settings.hash_salt_secret),
            hint=_SOURCE_HINT,
        ),
        "kafka": kafka,
        "connect": _connect(settings, kafka),
        "store": ObjectStore(bucket=settings.bucket, region=settings.region),
        "spark": _spark(settings),
        "glue": GlueCatalog(region=settings.region),
        "athena": Athena(
            region=settings.region,
            database=settings.catalog,
            workgroup=settings.athena_workgroup,
            usd_per_tb=settings.athena_usd_per_tb,
            output_location=f"s3://{settings.work_bucket}/athena-results/",
        ),
        "dashboards": _dashboards(settings),
        "metrics": _metrics(settings),
        "deployment": Deployment(
            profile="aws",
            source_host=settings.source_host,
            password_reference=settings.password_reference or secret.connect_reference(),
            # Not verified: whether MSK Connect's workers accept exactly.once.source.support, and whether the brokers'
            # IAM policies allow what it requires. Without it records can be duplicated, which the lake supports.
            exactly_once="requested",
            registry_url=settings.registry_converter_url or settings.registry_url,
            registry_authorization=settings.registry_reference or _registry_reference(settings),
            record_bytes=settings.kafka_record_bytes,
            snapshot_seconds=settings.snapshot_seconds,
            poll_seconds=settings.poll_seconds,
            pages="",
        ),
    }
    return found | (
        {"queue": Sqs(region=settings.region, queue_url=settings.events_queue)} if settings.events_queue else {}
    )


def _secret(settings: AwsSettings, name: str) -> DatabaseSecret | None:
    return DatabaseSecret(region=settings.region, secret_id=name) if name else None


def _registry(settings: AwsSettings) -> Registry | None:
    if not settings.registry_url:
        return None
    return Registry(url=settings.registry_url, secret=_secret(settings, settings.registry_secret))


def _registry_reference(settings: AwsSettings) -> str:
    secret = _secret(settings, settings.registry_secret)
    return "" if secret is None else secret.connect_reference()


def _connect(settings: AwsSettings, kafka: Kafka) -> KafkaConnect | MskConnect:
    """Return the user's own Connect worker if its URL is set, else MSK Connect."""
    if settings.connect_url:
        password = dg.EnvVar("CDC_LAKE_CONNECT_PASSWORD") if settings.connect_user else ""
        return KafkaConnect(url=settings.connect_url, user=settings.connect_user, password=password, hint=_CONNECT_HINT)
    return MskConnect(
        region=settings.region, settings=_connect_settings(settings), kafka=kafka, poll_seconds=settings.poll_seconds
    )


def _connect_settings(settings: AwsSettings) -> ConnectSettings:
    arn, _, revision = settings.connect_plugin.partition("@")
    return ConnectSettings(
        subnets=settings.connect_subnets,
        security_groups=settings.connect_groups,
        role_arn=settings.connect_role,
        plugins=[Plugin(connector_class=_DEBEZIUM, arn=arn, revision=int(revision or 1))],
        worker_configurations={
            connector_name(pipeline): WorkerConfiguration(arn=each)
            for pipeline, each in settings.worker_configurations.items()
        },
        log_group=settings.connect_log_group,
        mcu_count=settings.connect_mcus,
        workers=settings.connect_workers,
        max_workers=settings.connect_max_workers,
        tags=settings.connect_tags,
    )


def _spark(settings: AwsSettings) -> EmrSteps | EmrServerlessSpark:
    """Return EMR steps if a cluster is set, else EMR Serverless."""
    iam = msk_iam.JAVA_CLIENT if settings.kafka_security == "iam" else {}
    shared: dict[str, Any] = {
        "region": settings.region,
        "files": JobFiles(region=settings.region, bucket=settings.artifacts_bucket),
        "code": EmrCode(
            root=str(jobs.FOLDER.parents[1]),
            packages=list(job_call.PACKAGES),
            entry=str(jobs.FOLDER / "remote" / "main.py"),
            jars=str(jars("spark")),
            more_jars=[*_iam_jars(settings), *settings.emr_more_jars],
        ),
        "texts": job_call.JobTexts(),
        "properties": [str(jobs.FOLDER / "spark.properties")],
        "settings": {f"spark.cdc_lake.kafka.{name}": value for name, value in iam.items()},
        "secrets": {
            SOURCE_PASSWORD: settings.source_secret,
            REGISTRY_AUTHORIZATION: settings.registry_secret,
            HASH_SALT: settings.hash_salt_secret,
        },
        "poll_seconds": settings.poll_seconds,
    }
    if settings.emr_cluster:
        return EmrSteps(**shared, cluster_id=settings.emr_cluster, python=settings.emr_python)
    return EmrServerlessSpark(
        **shared,
        application_id=settings.emr_application,
        role_arn=settings.emr_job_role,
        log_uri=f"s3://{settings.work_bucket}/emr-logs/",
        environment=settings.emr_environment or None,
    )


def _iam_jars(settings: AwsSettings) -> list[str]:
    """Return the jars with which Kafka's Java client authenticates with MSK by IAM; EMR's Spark lacks them."""
    return [str(jar) for jar in sorted(jars("msk-iam").glob("*.jar"))] if settings.kafka_security == "iam" else []


def _dashboards(settings: AwsSettings) -> QuickSightDashboards:
    return QuickSightDashboards(
        quicksight=QuickSight(
            region=settings.region,
            account_id=settings.account_id,
            principal=settings.quicksight_principal,
            workgroup=settings.athena_workgroup,
            role_arn=settings.quicksight_role,
            poll_seconds=min(2.0, settings.poll_seconds),
        ),
        **(
            {}
            if settings.quicksight_pause_seconds is None
            else {"refresh_pause_seconds": settings.quicksight_pause_seconds}
        ),
    )


def _metrics(settings: AwsSettings) -> CloudWatchMetrics | NoMetrics:
    """Return CloudWatch metrics if the environment has a name, which is part of the metrics; otherwise NoMetrics."""
    if not settings.environment:
        return NoMetrics()
    # Short timeouts: a tick of the sensor that sends the metrics may take a minute, and the next tick sends them again.
    return CloudWatchMetrics(
        region=settings.region,
        environment=settings.environment,
        connect_timeout_seconds=3.0,
        read_timeout_seconds=5.0,
        attempts=2,
    )
