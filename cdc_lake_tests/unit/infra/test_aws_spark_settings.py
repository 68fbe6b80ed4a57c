"""Which Spark settings the local EMR APIs take: those of our jobs, and no other."""

from __future__ import annotations

from typing import Any

import pytest
from botocore.exceptions import ClientError

from cdc_lake.profile_local import JOBS
from cdc_lake_tests.fakes.emr import BUCKET, Served, served
from infra.local.aws_endpoint.emr import CLUSTER
from infra.local.aws_endpoint.emr_serverless import APPLICATION
from infra.local.aws_endpoint.spark_settings import passed_on, refused
from resources import spark_properties
from resources.msk_iam import JAVA_CLIENT

ENTRY = f"s3://{BUCKET}/main.py"
ATTACKS = (
    "spark.driver.defaultJavaOptions",
    "spark.driver.extraClassPath",
    "spark.driver.extraJavaOptions",
    "spark.executor.extraJavaOptions",
    "spark.hadoop.fs.s3a.aws.credentials.provider",
    "spark.hadoop.fs.s3a.endpoint",
    "spark.hadoop.fs.s3a.endpoint.region",
    "spark.jars",
    "spark.jars.packages",
    "spark.jars.ivySettings",
    "spark.plugins",
    "spark.pyspark.python.evil",
    "spark.python.daemon.module",
    "spark.r.command",
    "spark.sql.hive.metastore.jars.path",
    "spark.submit.pyFiles",
    "spark.yarn.dist.files",
)


@pytest.fixture(scope="module")
def aws(tmp_path_factory: pytest.TempPathFactory) -> Any:  # noqa: ANN401 - a generator
    """The APIs."""
    with served(tmp_path_factory.mktemp("emr")) as found:
        yield found


def test_what_our_jobs_send_is_taken() -> None:
    sent = spark_properties.read([str(JOBS / "spark.properties")])
    sent |= {f"spark.cdc_lake.kafka.{name}": value for name, value in JAVA_CLIENT.items()}
    assert len(sent) > 15
    assert refused(sent) == []
    assert passed_on(sent) == sent


@pytest.mark.parametrize("name", ATTACKS)
def test_no_step_has_another(aws: Served, name: str) -> None:
    jar = {"Jar": "command-runner.jar", "Args": ["spark-submit", "--conf", f"{name}=x", ENTRY]}
    step = {"Name": "x", "ActionOnFailure": "CONTINUE", "HadoopJarStep": jar}
    with pytest.raises(ClientError, match=rf"does not take {name}: "):
        aws.client("emr").add_job_flow_steps(JobFlowId=CLUSTER, Steps=[step])
    assert aws.runs["emr"].newest_first() == []


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("by", ["parameters", "defaults"])
def test_no_job_run_has_another(aws: Served, name: str, by: str) -> None:
    submit = {"entryPoint": ENTRY}
    defaults = {"classification": "spark-defaults", "properties": {} if by == "parameters" else {name: "x"}}
    if by == "parameters":
        submit["sparkSubmitParameters"] = f"--conf {name}=x"
    with pytest.raises(ClientError, match=rf"does not take {name}: "):
        aws.client("emr-serverless").start_job_run(
            applicationId=APPLICATION,
            clientToken="t",
            executionRoleArn="arn:aws:iam::123456789012:role/jobs",
            jobDriver={"sparkSubmit": submit},
            configurationOverrides={"applicationConfiguration": [defaults]},
        )
    assert aws.runs["emr-serverless"].newest_first() == []


def test_options_of_the_jvm_are_taken_to_the_letter() -> None:
    name = "spark.driver.extraJavaOptions"
    assert refused({name: "-Duser.timezone=UTC"}) == []
    assert refused({name: "-Duser.timezone=UTC -javaagent:/tmp/other.jar"}) == [name]
    assert passed_on({name: "-javaagent:/tmp/other.jar"}) == {}
