"""A real job by both of EMR's APIs: uploaded code, spark-submit, a table in the store, the report, and an error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from cdc_lake.contract.errors import LeaseHeldError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.table import lease
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.maintenance import purge
from cdc_lake.jobs.maintenance.purge import PurgeSpec
from cdc_lake.jobs.remote import job_call
from cdc_lake.profile_local import JOBS
from cdc_lake_tests.aws_api.emr.serverless import APPLICATION
from cdc_lake_tests.aws_api.emr.steps import CLUSTER
from cdc_lake_tests.aws_api.served import aws_api
from cdc_lake_tests.integration.jobs.change_records import COLUMNS, KEY, event
from cdc_lake_tests.integration.jobs.engines import BUCKET, Engines, make_bucket
from cdc_lake_tests.integration.jobs.hudi_table import LakeTable
from cdc_lake_tests.local_stack import running_stack
from infra.local.stack.attach import load_endpoints
from infra.local.stack.endpoints import Endpoints
from resources.kafka.resource import Kafka
from resources.spark.emr import EmrSteps
from resources.spark.emr_code import EmrCode
from resources.spark.emr_job_files import JobFiles
from resources.spark.emr_jobs import EmrJobs
from resources.spark.emr_serverless import EmrServerlessSpark


@dataclass(frozen=True)
class Aws:
    """The APIs' address, and the store."""

    url: str
    at: Endpoints
    location: S3Location

    def fields(self) -> dict[str, Any]:
        """What both resources have."""
        keys = {"access_key": self.location.access_key, "secret_key": self.location.secret_key}
        root = JOBS.parents[1]
        code = EmrCode(
            root=str(root),
            packages=list(job_call.PACKAGES),
            entry=str(JOBS / "remote" / "main.py"),
            jars=str(self.at.spark_jars),
        )
        return {
            **keys,
            "region": self.at.region,
            "endpoint_url": self.url,
            "files": JobFiles(bucket=BUCKET, endpoint_url=self.at.s3_endpoint, region=self.at.region, **keys),
            "code": code,
            "texts": job_call.JobTexts(),
            "properties": [str(JOBS / "spark.properties")],
            "settings": {"spark.sql.shuffle.partitions": "4"},
            "poll_seconds": 0.5,
            "run_seconds": 300.0,
        }

    def table(self, name: str) -> LakeTable:
        """A table that no Spark of this process writes."""
        engines = Engines(self.location, Kafka(bootstrap="127.0.0.1:9"), cast(SparkSession, None))
        return LakeTable(engines, name, COLUMNS, KEY)


def steps(aws: Aws) -> EmrJobs:
    """Steps of the cluster."""
    return EmrSteps(**aws.fields(), cluster_id=CLUSTER, python="/opt/cdc-lake/bin/python")


def serverless(aws: Aws) -> EmrJobs:
    """Runs of the application."""
    role = "arn:aws:iam::123456789012:role/jobs"
    return EmrServerlessSpark(**aws.fields(), application_id=APPLICATION, role_arn=role, log_uri=f"s3://{BUCKET}/logs/")


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Aws]:
    """S3, and the APIs over it."""
    home = tmp_path_factory.mktemp("stack") / "home"
    with running_stack(home, ("s3",)):
        at = load_endpoints(home)
        secret = at.s3_secret_key.get_secret_value()
        location = S3Location(BUCKET, at.s3_endpoint, at.region, at.s3_access_key, secret)
        make_bucket(location)
        with aws_api(at, tmp_path_factory.mktemp("emr")) as found:
            yield Aws(found.url, at, location)


both = pytest.mark.parametrize(("make", "name"), [(steps, "steps"), (serverless, "serverless")])


@both
def test_an_upsert_writes_the_table_and_its_report_comes_back(
    aws: Aws, make: Callable[[Aws], EmrJobs], name: str
) -> None:
    table, spark = aws.table(name), make(aws)
    table.deliver([event(1, "c", 10), event(2, "c", 20)])
    done = spark.run(upsert.run, table.spec)
    assert (done.events, done.keys, done.manifests) == (2, 2, 1)
    rows = table.by_hudi_rs()
    assert len(rows) == 2
    assert {row["_hoodie_commit_time"] for row in rows} == {done.instant}


@both
def test_an_error_of_the_contract_is_raised_as_itself(aws: Aws, make: Callable[[Aws], EmrJobs], name: str) -> None:
    table = aws.table(f"{name}-held")
    key = object_names.lease_key(table.spec.pipeline, table.spec.table)
    with (
        lease.held(table.store, key, "another writer"),
        pytest.raises(LeaseHeldError, match="another writer") as caught,
    ):
        make(aws).run(purge.run, PurgeSpec(table.spec, 60))
    assert "ended as FAILED" in str(caught.value.__cause__)
