"""Jobs on both EMR APIs: uploaded code, spark-submit, a table in the store, the job's report and its error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import pytest
from pyspark.sql import SparkSession

from cdc_lake.contract.errors import LeaseHeldError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.table import lease
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.maintenance import purge
from cdc_lake.jobs.maintenance.purge import PurgeSpec
from cdc_lake_tests.aws_api.emr.job_resources import EmrResources
from cdc_lake_tests.aws_api.served import aws_api
from cdc_lake_tests.helpers.local_stack import running_stack
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.engines import BUCKET, Engines, make_bucket
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from infra.local.stack.attach import load_endpoints
from resources.kafka.resource import Kafka
from resources.spark.emr.jobs import EmrJobs
from resources.spark.emr.session import EmrSession

TESTS_IN_CI = 2


def table_named(emr: EmrResources, name: str) -> LakeTable:
    """Return a table that is not written by a Spark session of this process."""
    engines = Engines(emr.location, Kafka(bootstrap="127.0.0.1:9"), cast(SparkSession, None))
    return LakeTable(engines, name, COLUMNS, KEY)


@pytest.fixture(scope="module")
def emr(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmrResources]:
    """Run S3, and the emulated APIs with it."""
    home = tmp_path_factory.mktemp("stack") / "home"
    with running_stack(home, ("s3",)):
        at = load_endpoints(home)
        secret = at.s3_secret_key.get_secret_value()
        location = S3Location(BUCKET, at.s3_endpoint, at.region, at.s3_access_key, secret)
        make_bucket(location)
        with aws_api(at, tmp_path_factory.mktemp("emr")) as found:
            yield EmrResources(found.url, at, location)


Make = Callable[[EmrResources], EmrJobs]
both = pytest.mark.parametrize(
    ("make", "name"),
    [(EmrResources.steps, "steps"), (EmrResources.serverless, "serverless")],
)


@both
def test_an_upsert_writes_the_table_and_returns_its_report(emr: EmrResources, make: Make, name: str) -> None:
    table, spark = table_named(emr, name), make(emr)
    table.deliver([event(1, "c", 10), event(2, "c", 20)])
    done = spark.run(upsert.run, table.spec)
    assert (done.events, done.keys, done.manifests) == (2, 2, 1)
    rows = table.by_hudi_rs()
    assert len(rows) == 2
    assert {row["_hoodie_commit_time"] for row in rows} == {done.commit.instant}


@both
def test_a_contract_error_of_a_job_is_raised_with_its_type(emr: EmrResources, make: Make, name: str) -> None:
    table = table_named(emr, f"{name}-held")
    key = object_names.lease_key(table.spec.pipeline, table.spec.table)
    with (
        lease.held(table.store, key, "another writer"),
        pytest.raises(LeaseHeldError, match="another writer") as caught,
    ):
        make(emr).run(purge.run, PurgeSpec(table.spec, 60))
    assert "ended as FAILED" in str(caught.value.__cause__)


@both
def test_a_session_runs_several_jobs(emr: EmrResources, make: Make, name: str) -> None:
    table, spark = table_named(emr, f"{name}-session"), EmrSession(make(emr))
    applications = []
    for batch in (1, 2):
        table.deliver([event(batch, "c", 10 * batch)])
        assert spark.run(upsert.run, table.spec).keys == 1
        applications.append(spark.last_run())
    assert len(table.by_hudi_rs()) == 2
    assert applications[0] == applications[1]
    spark.stop()
