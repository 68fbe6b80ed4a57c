"""EMR Serverless' API for job runs of one application. Timeout, role, tags and logs do nothing."""

from __future__ import annotations

import shlex
from typing import Any

from cdc_lake_tests.aws_api.emr.runs import Run, Runs, new_id, spark_job
from cdc_lake_tests.aws_api.rest_protocol import RestService
from infra.local.aws_api.errors import AwsError

APPLICATION = "00localcdclake01"
_ARN = "arn:aws:emr-serverless:us-east-1:123456789012:/applications/"
_STATES = {"SUCCEEDED": "SUCCESS"}

Answer = dict[str, Any]


class EmrServerless:
    """Job runs of the application."""

    def __init__(self, runs: Runs) -> None:
        self._runs = runs
        operations = {"StartJobRun": self._start, "GetJobRun": self._get, "CancelJobRun": self._cancel}
        self.service = RestService("emr-serverless", operations, invalid="ValidationException")

    def _start(self, request: dict[str, Any]) -> Answer:
        _check_application(request)
        submit = request["jobDriver"]["sparkSubmit"]
        options = shlex.split(submit["sparkSubmitParameters"])
        [defaults] = request["configurationOverrides"]["applicationConfiguration"]
        job = spark_job([*options, submit["entryPoint"], *submit["entryPointArguments"]], defaults["properties"])
        return _ids(self._runs.start(Run(new_id("00"), request["name"], job, token=request["clientToken"])))

    def _get(self, request: dict[str, Any]) -> Answer:
        run = self._run(request)
        state = {"state": _STATES.get(run.state, run.state), "stateDetails": run.reason}
        times = {"createdAt": run.created, "updatedAt": run.ended or run.created}
        return {"jobRun": {**_ids(run), **state, **times, "name": run.name}}

    def _cancel(self, request: dict[str, Any]) -> Answer:
        run = self._run(request)
        if not self._runs.cancel(run):
            raise AwsError("ValidationException", f"JobRun {run.id} has ended as {run.state} and cannot be cancelled.")
        return _ids(run)

    def _run(self, request: dict[str, Any]) -> Run:
        _check_application(request)
        if request["jobRunId"] not in self._runs.all:
            raise _missing(f"JobRun {request['jobRunId']} does not exist")
        return self._runs.all[request["jobRunId"]]


def _ids(run: Run) -> Answer:
    return {"applicationId": APPLICATION, "jobRunId": run.id, "arn": f"{_ARN}{APPLICATION}/jobruns/{run.id}"}


def _check_application(request: dict[str, Any]) -> None:
    if request["applicationId"] != APPLICATION:
        raise _missing(f"Application {request['applicationId']} does not exist")


def _missing(message: str) -> AwsError:
    return AwsError("ResourceNotFoundException", message, status=404)
