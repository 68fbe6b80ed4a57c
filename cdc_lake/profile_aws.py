"""The aws profile: Aurora, MSK, MSK Connect, S3, EMR, Glue, Athena and QuickSight, named by environment variables.

Here: which resource is which system. Not here: choosing the profile (profile.py), the variables (aws_settings.py), and
credentials, addresses of AWS's services and retries' modes, which boto3 takes from the environment as everywhere: with
AWS_ENDPOINT_URL and keys in it, all of this uses another endpoint than AWS's, as tests do.
"""

from __future__ import annotations

from typing import Any

import dagster as dg

from cdc_lake.aws_settings import AwsSettings
from cdc_lake.jobs.remote import job_call
from cdc_lake.pipeline.naming import connector_name
from cdc_lake.pipeline.publishing.quicksight import QuickSightDashboards
from cdc_lake.profile_local import JOBS
from infra.local.artifacts.artifacts import jars
from resources.athena import Athena
from resources.aws.metrics import CloudWatchMetrics, NoMetrics
from resources.aws.secrets import DatabaseSecret
from resources.aws.sqs import Sqs
from resources.connect.kafka_connect import KafkaConnect
from resources.deployment import Deployment
from resources.glue.catalog import GlueCatalog
from resources.kafka import msk_iam
from resources.kafka.msk import Msk
from resources.kafka.resource import Kafka
from resources.msk_connect.connector_request import ConnectSettings, Plugin, WorkerConfiguration
from resources.msk_connect.resource import MskConnect
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres
from resources.quicksight.resource import QuickSight
from resources.spark.emr import EmrSteps
from resources.spark.emr_code import EmrCode
from resources.spark.emr_job_files import JobFiles
from resources.spark.emr_serverless import EmrServerlessSpark

_DEBEZIUM = "io.debezium.connector.postgresql.PostgresConnector"


def resources() -> dict[str, dg.ConfigurableResource[Any]]:
    """The resources by the names that assets ask for. Raises ResourceError where a variable is missing or wrong."""
    told = AwsSettings.from_environment()
    secret = DatabaseSecret(region=told.region, secret_id=told.source_secret)
    kafka = Kafka(
        cluster=Msk(region=told.region, cluster_arn=told.kafka_cluster),
        security=told.kafka_security,
        region=told.region,
    )
    found: dict[str, dg.ConfigurableResource[Any]] = {
        "postgres": Postgres(
            host=told.source_host,
            port=told.source_port,
            user="",
            secret=secret,
            database=told.source_database,
            capture_role=told.capture_role,
        ),
        "kafka": kafka,
        "connect": _connect(told, kafka),
        "store": ObjectStore(bucket=told.bucket, region_name=told.region),
        "spark": _spark(told),
        "glue": GlueCatalog(region=told.region),
        "athena": Athena(
            region=told.region,
            database=told.catalog,
            workgroup=told.athena_workgroup,
            usd_per_tb=told.athena_usd_per_tb,
            output_location=f"s3://{told.work_bucket}/athena-results/",
        ),
        "dashboards": _dashboards(told),
        "metrics": _metrics(told),
        "deployment": Deployment(
            profile="aws",
            source_host=told.source_host,
            password_reference=told.password_reference or secret.connect_reference(),
            # Whether MSK Connect's workers take exactly.once.source.support, and its brokers' IAM what that asks of
            # them, was not seen. Without it records can come twice, which the lake is built for.
            exactly_once="requested",
            record_bytes=told.kafka_record_bytes,
            snapshot_seconds=told.snapshot_seconds,
            poll_seconds=told.poll_seconds,
            pages="",
        ),
    }
    return found | ({"queue": Sqs(region=told.region, queue_url=told.events_queue)} if told.events_queue else {})


def _connect(told: AwsSettings, kafka: Kafka) -> KafkaConnect | MskConnect:
    """A Connect of one's own where its address is said, and else MSK Connect."""
    if told.connect_url:
        password = dg.EnvVar("CDC_LAKE_CONNECT_PASSWORD") if told.connect_user else ""
        return KafkaConnect(url=told.connect_url, user=told.connect_user, password=password)
    return MskConnect(region=told.region, settings=_settings(told), kafka=kafka, poll_seconds=told.poll_seconds)


def _settings(told: AwsSettings) -> ConnectSettings:
    arn, _, revision = told.connect_plugin.partition("@")
    return ConnectSettings(
        subnets=told.connect_subnets,
        security_groups=told.connect_groups,
        role_arn=told.connect_role,
        plugins=[Plugin(connector_class=_DEBEZIUM, arn=arn, revision=int(revision or 1))],
        worker_configurations={
            connector_name(pipeline): WorkerConfiguration(arn=each)
            for pipeline, each in told.connect_workers_of.items()
        },
        log_group=told.connect_log_group,
        mcu_count=told.connect_mcus,
        workers=told.connect_workers,
        max_workers=told.connect_max_workers,
        tags=told.connect_tags,
    )


def _spark(told: AwsSettings) -> EmrSteps | EmrServerlessSpark:
    """The cluster's steps where there is a cluster, and else EMR Serverless."""
    iam = msk_iam.JAVA_CLIENT if told.kafka_security == "iam" else {}
    shared: dict[str, Any] = {
        "region": told.region,
        "files": JobFiles(region=told.region, bucket=told.artifacts_bucket),
        "code": EmrCode(
            root=str(JOBS.parents[1]),
            packages=list(job_call.PACKAGES),
            entry=str(JOBS / "remote" / "main.py"),
            jars=str(jars("spark")),
            more_jars=[*_iam_jars(told), *told.emr_more_jars],
        ),
        "texts": job_call.JobTexts(),
        "properties": [str(JOBS / "spark.properties")],
        "settings": {f"spark.cdc_lake.kafka.{name}": value for name, value in iam.items()},
        "secrets": {"source-password": told.source_secret},
        "poll_seconds": told.poll_seconds,
    }
    if told.emr_cluster:
        return EmrSteps(**shared, cluster_id=told.emr_cluster, python=told.emr_python)
    return EmrServerlessSpark(
        **shared,
        application_id=told.emr_application,
        role_arn=told.emr_job_role,
        log_uri=f"s3://{told.work_bucket}/emr-logs/",
        environment=told.emr_environment or None,
    )


def _iam_jars(told: AwsSettings) -> list[str]:
    """What Kafka's Java client signs in to MSK with, which EMR's Spark does not have."""
    return [str(jar) for jar in sorted(jars("msk-iam").glob("*.jar"))] if told.kafka_security == "iam" else []


def _dashboards(told: AwsSettings) -> QuickSightDashboards:
    return QuickSightDashboards(
        quicksight=QuickSight(
            region=told.region,
            account_id=told.account_id,
            principal=told.quicksight_principal,
            workgroup=told.athena_workgroup,
            role_arn=told.quicksight_role,
            poll_seconds=min(2.0, told.poll_seconds),
        ),
        **({} if told.quicksight_pause_seconds is None else {"refresh_pause_seconds": told.quicksight_pause_seconds}),
    )


def _metrics(told: AwsSettings) -> CloudWatchMetrics | NoMetrics:
    """CloudWatch where the environment has a name, which tells its metrics from another's."""
    if not told.environment:
        return NoMetrics()
    # The sensor that puts them has a minute for all that it does, and comes again: it waits for nobody long.
    return CloudWatchMetrics(
        region=told.region,
        environment=told.environment,
        connect_timeout_seconds=3.0,
        read_timeout_seconds=5.0,
        attempts=2,
    )
