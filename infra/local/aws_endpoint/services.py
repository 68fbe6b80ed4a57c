"""The services of our own, each over the engine that stands for it.

Here: wiring. Not here: what they answer, and the services that are moto's (Glue, Athena's front, Secrets Manager, STS).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infra.local.artifacts import folder_of, jars
from infra.local.aws_endpoint.connect_worker import RestWorker
from infra.local.aws_endpoint.engine import Trino
from infra.local.aws_endpoint.gate import Application
from infra.local.aws_endpoint.kafka import KafkaApi
from infra.local.aws_endpoint.kafkaconnect import KafkaConnectApi
from infra.local.aws_endpoint.kafkaconnect_metrics import Monitoring
from infra.local.aws_endpoint.kafkaconnect_state import Records
from infra.local.aws_endpoint.plugin_archives import Archives
from infra.local.aws_endpoint.quicksight import QuickSightApi
from infra.local.aws_endpoint.quicksight_ingestions import Ingestions
from infra.local.aws_endpoint.quicksight_state import Objects
from infra.local.aws_endpoint.rest_json import RestJson
from infra.local.aws_endpoint.spark_services import spark_services
from infra.local.aws_endpoint.spark_submit import SparkHere
from infra.local.endpoints import BUCKET, CONNECT_USER
from infra.local.java import java_home
from infra.local.jvm import jar_version
from infra.local.spark_classes import java_options

_EMR_LOGS = f"s3://{BUCKET}/emr-logs/"


@dataclass(frozen=True)
class Engines:
    """What stands behind the endpoint; `url` is the endpoint's own, `s3` boto3's client of the store."""

    state: Path
    region: str
    url: str
    trino: Trino
    connect_url: str
    kafka_bootstrap: str
    kafka_cluster: str
    s3_endpoint: str
    s3: Any
    access_key: str
    secret_key: str = field(repr=False)
    connect_password: str = field(repr=False)


def services(engines: Engines, moto: Application) -> Mapping[str, Application]:
    """The services by the names that requests are signed for; `moto` has the CloudWatch of connectors' metrics."""
    return {
        **_connect(engines, moto),
        **_quicksight(engines),
        **spark_services(engines.state, _spark(engines).prepared, engines.s3, engines.region, _EMR_LOGS),
    }


def _connect(engines: Engines, moto: Application) -> Mapping[str, Application]:
    records = Records(engines.state / "kafkaconnect.json", engines.region)
    connect = KafkaConnectApi(
        records, RestWorker(engines.connect_url, (CONNECT_USER, engines.connect_password)), Archives(engines.s3).fault
    )
    version = jar_version(folder_of("kafka"), "kafka-server")
    kafka = KafkaApi(engines.kafka_cluster, engines.kafka_bootstrap, version)
    return {
        "kafka": RestJson("kafka", kafka.operations),
        "kafkaconnect": RestJson("kafkaconnect", connect.operations),
        "monitoring": Monitoring(moto, connect.task_states, engines.region),
    }


def _quicksight(engines: Engines) -> Mapping[str, Application]:
    objects = Objects(engines.state / "quicksight.json", engines.region)
    api = QuickSightApi(objects, Ingestions(objects, engines.trino))
    return {"quicksight": RestJson("quicksight", api.operations, "InvalidParameterValueException")}


def _spark(engines: Engines) -> SparkHere:
    java, folder = java_home(17), jars("spark")
    # As the local profile has it. Not its daemon of Python workers: that does not see the uploaded packages.
    here = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -Djol.skipHotspotSAAttach=true"
    options = " ".join(filter(None, ("-Duser.timezone=UTC", here, java_options(java, folder))))
    return SparkHere(
        java_home=str(java),
        jars=folder,
        region=engines.region,
        s3_endpoint=engines.s3_endpoint,
        aws_endpoint=engines.url,
        access_key=engines.access_key,
        secret_key=engines.secret_key,
        s3=engines.s3,
        settings={
            "spark.driver.memory": "2g",
            "spark.driver.extraJavaOptions": options,
            "spark.sql.shuffle.partitions": "4",
        },
    )
