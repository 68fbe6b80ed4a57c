"""The resources that run Spark jobs through the emulated EMR APIs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cdc_lake import jobs
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.secret_fields import SOURCE_PASSWORD
from cdc_lake.jobs.remote import job_call
from cdc_lake_tests.aws_api.emr.serverless import APPLICATION
from cdc_lake_tests.aws_api.emr.steps import CLUSTER
from cdc_lake_tests.aws_api.served import DATABASE_SECRET
from infra.local.stack.endpoints import Endpoints
from resources.spark.emr.cluster_steps import EmrSteps
from resources.spark.emr.code import EmrCode
from resources.spark.emr.job_files import JobFiles
from resources.spark.emr.jobs import EmrJobs
from resources.spark.emr.serverless import EmrServerlessSpark


@dataclass(frozen=True)
class EmrResources:
    """Creates the resources for the emulated APIs at `url`.

    `at` are the endpoints of the stack; jobs are uploaded to the bucket of `location`.
    """

    url: str
    at: Endpoints
    location: S3Location

    def steps(self) -> EmrJobs:
        """Return the resource for steps of a cluster."""
        return EmrSteps(**self._fields(), cluster_id=CLUSTER, python="/opt/cdc-lake/bin/python")

    def serverless(self) -> EmrJobs:
        """Return the resource for runs of an EMR Serverless application."""
        role, logs = "arn:aws:iam::123456789012:role/jobs", f"s3://{self.location.bucket}/logs/"
        return EmrServerlessSpark(**self._fields(), application_id=APPLICATION, role_arn=role, log_uri=logs)

    def _fields(self) -> dict[str, Any]:
        keys: dict[str, Any] = {"access_key": self.location.access_key, "secret_key": self.location.secret_key}
        region, endpoint, bucket = self.at.region, self.at.s3_endpoint, self.location.bucket
        return {
            **keys,
            "region": region,
            "endpoint_url": self.url,
            "files": JobFiles(bucket=bucket, endpoint_url=endpoint, region=region, **keys),
            "code": EmrCode(
                root=str(jobs.FOLDER.parents[1]),
                packages=list(job_call.PACKAGES),
                entry=str(jobs.FOLDER / "remote" / "main.py"),
                jars=str(self.at.spark_jars),
            ),
            "texts": job_call.JobTexts(),
            "properties": [str(jobs.FOLDER / "spark.properties")],
            "settings": {"spark.sql.shuffle.partitions": "4"},
            "secrets": {SOURCE_PASSWORD: DATABASE_SECRET},
            "poll_seconds": 0.5,
            "run_seconds": 300.0,
        }
