"""Engines of the jobs' tests: S3 and Kafka of a stack, and one Spark session."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import boto3
from pyspark.sql import SparkSession

from cdc_lake import jobs
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.pipeline.bucket_location import location
from cdc_lake_tests.helpers.local_stack import running_stack
from infra.artifacts.spark_classes import java_options
from infra.local.stack.attach import load_endpoints
from infra.local.stack.endpoints import Endpoints
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.spark.local import LocalSpark

BUCKET = "jobs-tests"


@dataclass(frozen=True)
class Engines:
    """A bucket, a broker, and a Spark session."""

    location: S3Location
    kafka: Kafka
    spark: SparkSession


@dataclass(frozen=True)
class SparkAdditions:
    """Folders of jars, and files of settings, that a session has in addition to those of the local profile."""

    jars: Sequence[Path] = ()
    properties: Sequence[Path] = ()


NO_ADDITIONS = SparkAdditions()


@contextmanager
def running_engines(
    home: Path,
    scratch: Path,
    components: Sequence[str] = ("s3", "kafka"),
    additions: SparkAdditions = NO_ADDITIONS,
) -> Iterator[tuple[Engines, Endpoints]]:
    """Run components of a stack with the state folder `home`, and Spark with its own folder `scratch`."""
    with running_stack(home, components):
        at = load_endpoints(home)
        store = ObjectStore(
            bucket=BUCKET,
            region=at.region,
            endpoint_url=at.s3_endpoint,
            access_key=at.s3_access_key,
            secret_key=at.s3_secret_key.get_secret_value(),
        )
        make_bucket(location(store))
        with running_spark(at, store, scratch, additions) as session:
            yield Engines(location(store), Kafka(bootstrap=at.kafka_bootstrap), session), at


@contextmanager
def running_spark(
    at: Endpoints, store: ObjectStore, scratch: Path, additions: SparkAdditions = NO_ADDITIONS
) -> Iterator[SparkSession]:
    """Run Spark on a store, with the local profile's settings and its own folder."""
    own = scratch / "spark.properties"
    own.write_text(f"spark.sql.warehouse.dir {scratch}/warehouse\n")
    settings = (jobs.FOLDER / "spark.properties", jobs.FOLDER / "spark-local.properties", own, *additions.properties)
    spark = LocalSpark(
        java_home=str(at.java_home),
        jars=str(_linked(scratch / "jars", (at.spark_jars, *additions.jars)) if additions.jars else at.spark_jars),
        properties=[str(path) for path in settings],
        log4j=str(jobs.FOLDER / "log4j2-local.properties"),
        # The class archive belongs to the local profile's jars.
        java_options="" if additions.jars else java_options(at.java_home, at.spark_jars),
        store=store,
        scratch=str(scratch / "local"),
    )
    try:
        yield spark.session()
    finally:
        spark.stop()


def _linked(folder: Path, jars: Sequence[Path]) -> Path:
    """Create a folder with links to the jars of these folders, because LocalSpark reads one folder."""
    folder.mkdir()
    for jar in (jar for each in jars for jar in each.glob("*.jar")):
        (folder / jar.name).symlink_to(jar)
    return folder


def make_bucket(location: S3Location) -> None:
    """Create the tests' bucket."""
    client = boto3.client(
        "s3",
        endpoint_url=location.endpoint_url,
        region_name=location.region,
        aws_access_key_id=location.access_key,
        aws_secret_access_key=location.secret_key,
    )
    client.create_bucket(Bucket=location.bucket)
