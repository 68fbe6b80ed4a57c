"""What the jobs' tests run on: the stack's S3 and Kafka, and one Spark session, all started once.

Here: the fixtures' insides. Not here: tables and topics, of which each test has its own (tables.py, topics.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import boto3
from pyspark.sql import SparkSession

from cdc_lake.contract.store import S3Location
from cdc_lake.profile import JOBS
from cdc_lake_tests.stack import running_stack
from infra.local.attach import load_endpoints
from resources.kafka import Kafka
from resources.object_store import ObjectStore
from resources.spark import LocalSpark

BUCKET = "jobs-tests"


@dataclass(frozen=True)
class Engines:
    """A bucket of one's own, a broker, and Spark."""

    location: S3Location
    kafka: Kafka
    spark: SparkSession


@contextmanager
def running_engines(home: Path, scratch: Path) -> Iterator[Engines]:
    """The engines, up; `home` is the stack's state folder, `scratch` Spark's own."""
    with running_stack(home, ("s3", "kafka")):
        at = load_endpoints(home)
        store = ObjectStore(
            bucket=BUCKET,
            region=at.region,
            endpoint_url=at.s3_endpoint,
            access_key=at.s3_access_key,
            secret_key=at.s3_secret_key.get_secret_value(),
        )
        location = S3Location(store.bucket, store.endpoint_url, store.region, store.access_key, store.secret_key)
        make_bucket(location)
        own = scratch / "spark.properties"
        own.write_text(f"spark.sql.warehouse.dir {scratch}/warehouse\nspark.local.dir {scratch}/local\n")
        properties = [str(path) for path in (JOBS / "spark.properties", JOBS / "spark-local.properties", own)]
        spark = LocalSpark(
            java_home=str(at.java_home),
            jars=str(at.spark_jars),
            properties=properties,
            log4j=str(JOBS / "log4j2-local.properties"),
            store=store,
        ).session()
        try:
            yield Engines(location, Kafka(bootstrap=at.kafka_bootstrap), spark)
        finally:
            spark.stop()


def make_bucket(location: S3Location) -> None:
    """Make the tests' bucket."""
    client = boto3.client(
        "s3",
        endpoint_url=location.endpoint_url,
        region_name=location.region,
        aws_access_key_id=location.access_key,
        aws_secret_access_key=location.secret_key,
    )
    client.create_bucket(Bucket=location.bucket)
