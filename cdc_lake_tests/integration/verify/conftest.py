"""What the oracle's tests run on: the stack's PostgreSQL and S3, and one Spark session."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count

import pytest

from cdc_lake.contract.store import S3Location
from cdc_lake.profile import JOBS
from cdc_lake_tests.integration.jobs.engines import BUCKET, Engines, make_bucket
from cdc_lake_tests.integration.verify.judged import Judged
from cdc_lake_tests.stack import running_stack, scratch_home
from infra.local.attach import load_endpoints
from resources.kafka import Kafka
from resources.object_store import ObjectStore
from resources.postgres import Postgres
from resources.spark import LocalSpark

NewTable = Callable[[], Judged]


@pytest.fixture(scope="package")
def judged_tables(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NewTable]:
    """Makes tables, each with its own pipeline."""
    with scratch_home() as home, running_stack(home, ("postgres", "s3")):
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
        scratch = tmp_path_factory.mktemp("spark")
        own = scratch / "spark.properties"
        own.write_text(f"spark.sql.warehouse.dir {scratch}/warehouse\nspark.local.dir {scratch}/local\n")
        session = LocalSpark(
            java_home=str(at.java_home),
            jars=str(at.spark_jars),
            properties=[str(path) for path in (JOBS / "spark.properties", JOBS / "spark-local.properties", own)],
            log4j=str(JOBS / "log4j2-local.properties"),
            store=store,
        ).session()
        postgres = Postgres(
            host=at.postgres_host,
            port=at.postgres_port,
            user=at.postgres_user,
            password=at.postgres_password.get_secret_value(),
            database=at.postgres_database,
        )
        engines = Engines(location, Kafka(bootstrap=at.kafka_bootstrap), session)
        numbers = count(1)
        try:
            yield lambda: Judged.made(engines, postgres, f"judged_{next(numbers)}")
        finally:
            session.stop()


@pytest.fixture
def judged(judged_tables: NewTable) -> Judged:
    """A table of the test's own."""
    return judged_tables()
