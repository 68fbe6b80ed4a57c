"""Runs Spark jobs on EMR Serverless, as a Dagster resource."""

import math
from dataclasses import replace

from pydantic import Field

from resources.aws import console_links
from resources.spark.emr.jobs import EmrJobs, Submission
from resources.spark.job_interface import JobRun

_FINAL = frozenset({"SUCCESS", "FAILED", "CANCELLED"})
_SHORTEST_MINUTES = 5  # AWS's minimum
# Without a time limit. A session is not repeated by AWS: its caller starts another one.
_STREAMING = {"mode": "STREAMING", "executionTimeoutMinutes": 0, "retryPolicy": {"maxFailedAttemptsPerHour": 1}}


class EmrServerlessSpark(EmrJobs):
    """Runs each job as a job run of an application.

    Settings are passed as the classification spark-defaults, which allows spaces in values.

    Usage:

        spark = EmrServerlessSpark(application_id="00abc", role_arn=role, log_uri="s3://bucket/logs/", files=files,
                                   code=code, texts=texts, properties=[])
        report = spark.run(upsert.run, spec)
    """

    application_id: str
    role_arn: str = Field(description="The role that the jobs run under.")
    log_uri: str = Field(description="The folder that logs are written to: s3://…")
    environment: str | None = Field(
        default=None,
        description="An archive (venv-pack) with Python and the requirements of cdc-lake, s3://…; None: the"
        " application's image contains them.",
    )
    tags: dict[str, str] = Field(default={})

    def _start(self, submission: Submission) -> JobRun:
        code = submission.code
        parameters = f"--py-files {code.archive}" + (f" --jars {','.join(code.jars)}" if code.jars else "")
        driver = {
            "entryPoint": code.entry,
            "entryPointArguments": list(submission.arguments),
            "sparkSubmitParameters": parameters,
        }
        defaults = {"classification": "spark-defaults", "properties": {**submission.settings, **self._python()}}
        request = {
            "applicationId": self.application_id,
            "clientToken": submission.id,  # a repeated request with the same token starts no second run
            "executionRoleArn": self.role_arn,
            "jobDriver": {"sparkSubmit": driver},
            "configurationOverrides": {
                "applicationConfiguration": [defaults],
                "monitoringConfiguration": {"s3MonitoringConfiguration": {"logUri": self.log_uri}},
            },
            **(_STREAMING if submission.is_session else self._limit()),
            "name": submission.name,
            **({"tags": self.tags} if self.tags else {}),
        }

        def start() -> str:
            with self.translate_errors(f"start the job {submission.job} on the application {self.application_id}"):
                return str(self.client("emr-serverless").start_job_run(**request)["jobRunId"])

        run_id = self.with_retries(start)
        logs = f"{self.log_uri.rstrip('/')}/applications/{self.application_id}/jobs/{run_id}/SPARK_DRIVER/"
        pages = console_links.objects(self.region, logs), console_links.emr_serverless(self.region)
        return JobRun(submission.job, run_id, "SUBMITTED", "", logs, *pages)

    def _limit(self) -> dict[str, int]:
        return {"executionTimeoutMinutes": max(_SHORTEST_MINUTES, math.ceil(self.run_seconds / 60))}

    def _python(self) -> dict[str, str]:
        if self.environment is None:
            return {}
        python = "./environment/bin/python"
        return {
            "spark.archives": f"{self.environment}#environment",
            "spark.emr-serverless.driverEnv.PYSPARK_DRIVER_PYTHON": python,
            "spark.emr-serverless.driverEnv.PYSPARK_PYTHON": python,
            "spark.executorEnv.PYSPARK_PYTHON": python,
        }

    def refreshed(self, run: JobRun) -> JobRun:
        with self.translate_errors(f"describe {self.label(run)}"):
            found = self.client("emr-serverless").get_job_run(applicationId=self.application_id, jobRunId=run.id)[
                "jobRun"
            ]
        return replace(run, state=found["state"], reason=found.get("stateDetails", ""))

    def cancel_run(self, run: JobRun) -> None:
        with self.translate_errors(f"cancel {self.label(run)}"):
            self.client("emr-serverless").cancel_job_run(applicationId=self.application_id, jobRunId=run.id)

    def is_final(self, state: str) -> bool:
        return state in _FINAL

    def _has_succeeded(self, state: str) -> bool:
        return state == "SUCCESS"

    def label(self, run: JobRun) -> str:
        return f"job run {run.id} ({run.job}) of the EMR Serverless application {self.application_id} in {self.region}"
