"""Jobs on the fake EMR APIs: the resources, and a job whose spec names its behaviour."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from cdc_lake_tests.aws_api.emr.in_memory import BUCKET, LOGS, Served
from cdc_lake_tests.aws_api.emr.serverless import APPLICATION
from cdc_lake_tests.aws_api.emr.steps import CLUSTER
from resources.spark.emr.cluster_steps import EmrSteps
from resources.spark.emr.code import EmrCode
from resources.spark.emr.job_files import JobFiles
from resources.spark.emr.jobs import EmrJobs
from resources.spark.emr.serverless import EmrServerlessSpark


class HeldError(Exception):
    """The error of the job."""


class Texts:
    """Texts of a fake job, whose spec names its behaviour."""

    def name(self, job: Callable[..., Any]) -> str:
        """Implement JobTexts."""
        return job.__name__

    def request(self, job: Callable[..., Any], spec: object, secrets: Mapping[str, str]) -> str:  # noqa: ARG002
        """Implement JobTexts."""
        return json.dumps({"do": spec, "password": secrets.get("source-password")})

    def report(self, job: Callable[..., Any], text: str) -> Any:  # noqa: ANN401, ARG002
        """Implement JobTexts."""
        return json.loads(text)["report"]

    def error(self, text: str) -> Exception | None:
        """Implement JobTexts."""
        error = json.loads(text).get("error")
        return None if error is None else HeldError(error)


def code(folder: Path) -> EmrCode:
    """Create a job's code and jars."""
    package, jars = folder / "code" / "shop", folder / "jars"
    package.mkdir(parents=True, exist_ok=True)
    (package / "__init__.py").touch()
    entry = folder / "main.py"
    entry.touch()
    jars.mkdir(exist_ok=True)
    (jars / "hudi-1.jar").write_bytes(b"hudi")
    (jars / "hadoop-aws-3.jar").write_bytes(b"s3a")
    return EmrCode(root=str(package.parent), packages=["shop"], entry=str(entry), jars=str(jars))


def fields(aws: Served, folder: Path) -> dict[str, Any]:
    """Return the fields of both resources."""
    keys: dict[str, Any] = {"access_key": "key", "secret_key": "secret", "attempts": 1}
    properties = folder / "spark.properties"
    properties.write_text("# Spark's\nspark.app.name  cdc-lake\nspark.sql.ansi.enabled false\n")
    return {
        **keys,
        "endpoint_url": aws.url,
        "files": JobFiles(bucket=BUCKET, endpoint_url=aws.s3.url, **keys),
        "code": code(folder),
        "texts": Texts(),
        "properties": [str(properties)],
        "settings": {"spark.cdc_lake.kafka.sasl.jaas.config": "IAMLoginModule required;"},
        "secrets": {"source-password": "arn:secret"},
        "poll_seconds": 0.02,
        "patience_seconds": 3.0,
        "run_seconds": 30.0,
    }


def steps(aws: Served, folder: Path, **more: object) -> EmrJobs:
    """Return the resource for steps of a cluster."""
    return EmrSteps(**{**fields(aws, folder), "cluster_id": CLUSTER, "python": "/opt/python", **more})


def serverless(aws: Served, folder: Path, **more: object) -> EmrJobs:
    """Return the resource for runs of an application."""
    role = "arn:aws:iam::123456789012:role/jobs"
    own = {"application_id": APPLICATION, "role_arn": role, "log_uri": LOGS, "environment": "s3://lake/env.tar.gz"}
    return EmrServerlessSpark(**{**fields(aws, folder), **own, **more})
