"""Runs Spark jobs as steps of an EMR cluster that is already running, as a Dagster resource."""

from dataclasses import replace
from typing import Any

from pydantic import Field, PrivateAttr

from resources.aws import console_links
from resources.aws.aws_resource import AwsRequestFailed
from resources.errors import JobFailed, Unreachable
from resources.spark.emr.jobs import EmrJobs, Submission
from resources.spark.job_interface import JobRun

_FINAL = frozenset({"COMPLETED", "CANCELLED", "FAILED", "INTERRUPTED"})


_UNCERTAIN = frozenset({"InternalFailure", "InternalServerError", "InternalServerException", "ServiceUnavailable"})
"""Error codes after which EMR may have added the step."""


class EmrSteps(EmrJobs):
    """Runs each job as a step, `spark-submit` in client mode by command-runner.jar.

    In client mode, cancelling a step ends the driver, and the step's log is the driver's. In cluster mode, YARN would
    continue the job.

    Usage:

        spark = EmrSteps(cluster_id="j-1ABC", python="/usr/bin/python3.11", files=files, code=code, texts=texts,
                         properties=[])
        report = spark.run(upsert.run, spec)
    """

    cluster_id: str
    role_arn: str | None = Field(
        default=None, description="The steps' runtime role, if the cluster supports runtime roles."
    )
    python: str = Field(
        description="The Python interpreter on the cluster's machines that has the requirements of cdc-lake."
    )

    _logs: str | None = PrivateAttr(default=None)

    def _start(self, submission: Submission) -> JobRun:
        logs = self._log_folder()
        settings = {
            **submission.settings,
            "spark.pyspark.python": self.python,
            "spark.pyspark.driver.python": self.python,
        }
        options = [part for name, value in settings.items() for part in ("--conf", f"{name}={value}")]
        code = submission.code
        if code.jars:
            options += ["--jars", ",".join(code.jars)]
        args = ["spark-submit", "--deploy-mode", "client", *options, "--py-files", code.archive, code.entry]
        step = {
            "Name": submission.name,
            "ActionOnFailure": "CONTINUE",
            "HadoopJarStep": {"Jar": "command-runner.jar", "Args": [*args, *submission.arguments]},
        }
        request: dict[str, Any] = {"JobFlowId": self.cluster_id, "Steps": [step]}
        if self.role_arn:
            request["ExecutionRoleArn"] = self.role_arn
        step_id = self.with_retries(lambda: self._add_step(request, submission.name), idempotent=False)
        log, page = f"{logs}{step_id}/", console_links.emr_cluster(self.region, self.cluster_id)
        return JobRun(submission.job, step_id, "PENDING", "", log, console_links.objects(self.region, log), page)

    def _add_step(self, request: dict[str, Any], name: str) -> str:
        """Add a step and return its id; if the response was lost, return the id of the step that was added."""
        try:
            with self.translate_errors(f"add a step to the cluster {self.cluster_id}"):
                return str(self.client("emr", attempts=1).add_job_flow_steps(**request)["StepIds"][0])
        except (Unreachable, AwsRequestFailed) as error:
            if isinstance(error, AwsRequestFailed) and error.code not in _UNCERTAIN:
                raise
            found = self.with_retries(lambda: self._step_of(name))
            if found is None:
                raise
            return found

    def _step_of(self, name: str) -> str | None:
        with self.translate_errors(f"list the steps of the cluster {self.cluster_id}"):
            newest = self.client("emr").list_steps(ClusterId=self.cluster_id)["Steps"]
        return next((str(each["Id"]) for each in newest if each["Name"] == name), None)

    def refreshed(self, run: JobRun) -> JobRun:
        with self.translate_errors(f"describe {self.label(run)}"):
            step = self.client("emr").describe_step(ClusterId=self.cluster_id, StepId=run.id)["Step"]
        status = step["Status"]
        failure = status.get("FailureDetails", {})
        reasons = (failure.get("Reason"), failure.get("Message"), status.get("StateChangeReason", {}).get("Message"))
        found = replace(run, state=status["State"], reason=": ".join(filter(None, reasons)))
        log = failure.get("LogFile")
        return replace(found, logs=log, log_url=console_links.objects(self.region, log)) if log else found

    def cancel_run(self, run: JobRun) -> None:
        with self.translate_errors(f"cancel {self.label(run)}"):
            response = self.client("emr").cancel_steps(
                ClusterId=self.cluster_id, StepIds=[run.id], StepCancellationOption="TERMINATE_PROCESS"
            )
        for step in response["CancelStepsInfoList"]:
            if step["Status"] == "FAILED":  # in a response that is not an error
                reason = step.get("Reason", "EMR gives no reason").rstrip(".")
                raise JobFailed(f"Cannot cancel {self.label(run)}: {reason}.")

    def is_final(self, state: str) -> bool:
        return state in _FINAL

    def _has_succeeded(self, state: str) -> bool:
        return state == "COMPLETED"

    def label(self, run: JobRun) -> str:
        return f"step {run.id} ({run.job}) of the EMR cluster {self.cluster_id} in {self.region}"

    def _log_folder(self) -> str:
        """Return the folder in which the cluster writes the logs of all steps."""
        if self._logs is None:
            cluster = self.with_retries(self._cluster)
            uri = str(cluster.get("LogUri") or "").replace("s3n://", "s3://", 1).rstrip("/")
            self._logs = (
                f"{uri}/{self.cluster_id}/steps/" if uri else "the cluster's primary machine, /mnt/var/log/steps/"
            )
        return self._logs

    def _cluster(self) -> dict[str, Any]:
        with self.translate_errors(f"describe the cluster {self.cluster_id}"):
            return dict(self.client("emr").describe_cluster(ClusterId=self.cluster_id)["Cluster"])
