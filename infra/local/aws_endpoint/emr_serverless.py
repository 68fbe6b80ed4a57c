"""EMR Serverless' API: job runs of the one application that there is, run by spark-submit on this machine.

Here: StartJobRun, GetJobRun, ListJobRuns, CancelJobRun, and the application's GetApplication and ListApplications. What
makes or changes applications is refused: on AWS that is the CDK's (infra/aws), and here it is there from the start.

What differs from AWS: a run has one attempt, in a second, on this machine; --py-files, --jars and --conf are the
parameters that are taken, and spark-defaults the classification; timeout, role and tags are kept and do nothing.
"""

from __future__ import annotations

import secrets
import shlex
import string
from threading import Lock
from typing import Any

from infra.local.aws_endpoint.errors import AwsError
from infra.local.aws_endpoint.rest_json import Operation
from infra.local.aws_endpoint.spark_runs import Run, SparkRuns
from infra.local.aws_endpoint.spark_submit import NotTakenError, parsed, place

APPLICATION = "00localcdclake01"
RELEASE = "emr-7.9.0"
ACCOUNT = "123456789012"
RUN_LOGS = "{logs}/applications/{application}/jobs/{run}/SPARK_DRIVER/"
_STATES = {"SUCCEEDED": "SUCCESS"}
_DEFAULTS = "spark-defaults"
_TAKEN = frozenset({"applicationConfiguration", "monitoringConfiguration"})
_PAGE = 50  # AWS's, too
_ALPHABET = string.ascii_lowercase + string.digits

Answer = dict[str, Any]


class EmrServerlessApi:
    """The offered operations: parameters in, members of the answer out."""

    def __init__(self, runs: SparkRuns, region: str) -> None:
        self._runs, self._region, self._lock = runs, region, Lock()
        self.operations: dict[str, Operation] = {
            "StartJobRun": self._start,
            "GetJobRun": self._get,
            "ListJobRuns": self._list,
            "CancelJobRun": self._cancel,
            "GetApplication": self._application,
            "ListApplications": lambda _: {"applications": [{**self._about(), "id": APPLICATION}]},
        }

    def _start(self, request: dict[str, Any]) -> Answer:
        _known(request)
        for name in ("executionIamPolicy", "retryPolicy"):
            if name in request:
                raise _invalid(f"The local AWS endpoint does not take {name}.")
        if request.get("mode", "BATCH") != "BATCH":
            raise _invalid("The local AWS endpoint takes the mode BATCH only.")
        with self._lock:  # the same token at the same moment is the same run, too
            for known in self._runs.newest_first():
                if known.request["clientToken"] == request["clientToken"]:
                    return self._id(known)
            return self._id(self._runs.start(self._run(request)))

    def _run(self, request: dict[str, Any]) -> Run:
        submit = request.get("jobDriver", {}).get("sparkSubmit")
        if submit is None:
            raise _invalid("The local AWS endpoint takes job drivers of sparkSubmit only.")
        run_id = "00" + "".join(secrets.choice(_ALPHABET) for _ in range(14))
        settings, log_uri = _overrides(request.get("configurationOverrides", {}))
        logs = RUN_LOGS.format(logs=log_uri.rstrip("/"), application=APPLICATION, run=run_id) if log_uri else ""
        try:
            options = shlex.split(submit.get("sparkSubmitParameters", ""))
            if logs:
                place(logs)
            wanted = parsed([*options, submit["entryPoint"], *submit.get("entryPointArguments", [])], settings)
        except (NotTakenError, ValueError) as error:
            raise _invalid(str(error)) from error
        return Run(run_id, wanted, request, logs)

    def _get(self, request: dict[str, Any]) -> Answer:
        run = self._one(request)
        if request.get("attempt", 1) != 1:
            raise _missing(f"JobRun {run.id} has no attempt {request['attempt']}")
        told = ("name", "configurationOverrides", "tags", "executionTimeoutMinutes", "jobDriver")
        answer: Answer = {
            **self._summary(run),
            "jobRunId": run.id,
            "mode": "BATCH",
            "attempt": 1,
            **{name: run.request[name] for name in told if name in run.request},
        }
        if run.started is not None:
            answer["startedAt"] = run.started
        if run.ended is not None:
            answer["endedAt"] = run.ended
            answer["totalExecutionDurationSeconds"] = int(run.ended - (run.started or run.ended))
        return {"jobRun": answer}

    def _list(self, request: dict[str, Any]) -> Answer:
        _known(request)
        refused = [name for name in ("createdAtAfter", "createdAtBefore", "mode") if name in request]
        if refused:
            raise _invalid(f"The local AWS endpoint does not take {', '.join(refused)}.")
        states = request.get("states")
        runs = [run for run in self._runs.newest_first() if states is None or _state(run) in states]
        ids = [run.id for run in runs]
        token = request.get("nextToken")
        if token is not None and token not in ids:
            raise _invalid(f"Invalid nextToken {token!r}.")
        rest = runs if token is None else runs[ids.index(token) + 1 :]
        limit = min(request.get("maxResults", _PAGE), _PAGE)
        page: Answer = {"jobRuns": [{**self._summary(run), "id": run.id, "type": "Spark"} for run in rest[:limit]]}
        return {**page, "nextToken": rest[limit - 1].id} if len(rest) > limit else page

    def _cancel(self, request: dict[str, Any]) -> Answer:
        run = self._one(request)
        if not self._runs.cancel(run.id):
            raise _invalid(f"JobRun {run.id} is in {_state(run)} state and can't be cancelled.")
        return {"applicationId": APPLICATION, "jobRunId": run.id}

    def _one(self, request: dict[str, Any]) -> Run:
        _known(request)
        found = self._runs.get(request["jobRunId"])
        if found is None:
            raise _missing(f"JobRun {request['jobRunId']} does not exist")
        return found

    def _summary(self, run: Run) -> Answer:
        return {
            "applicationId": APPLICATION,
            "name": run.request.get("name", ""),
            "arn": self._id(run)["arn"],
            "createdBy": f"arn:aws:iam::{ACCOUNT}:user/local",
            "createdAt": run.created,
            "updatedAt": run.changed,
            "executionRole": run.request["executionRoleArn"],
            "state": _state(run),
            "stateDetails": run.reason,
            "releaseLabel": RELEASE,
        }

    def _id(self, run: Run) -> Answer:
        arn = f"{self._about()['arn']}/jobruns/{run.id}"
        return {"applicationId": APPLICATION, "jobRunId": run.id, "arn": arn}

    def _about(self) -> Answer:
        arn = f"arn:aws:emr-serverless:{self._region}:{ACCOUNT}:/applications/{APPLICATION}"
        about: Answer = {"arn": arn, "name": "local", "releaseLabel": RELEASE, "type": "Spark", "state": "STARTED"}
        return {**about, "createdAt": 0, "updatedAt": 0}

    def _application(self, request: dict[str, Any]) -> Answer:
        _known(request)
        return {"application": {**self._about(), "applicationId": APPLICATION}}


def _overrides(told: dict[str, Any]) -> tuple[dict[str, str], str]:
    """Spark's settings, and the folder for logs. Raises ValidationException."""
    monitoring = told.get("monitoringConfiguration", {})
    s3 = monitoring.get("s3MonitoringConfiguration", {})
    others = [*(told.keys() - _TAKEN), *(monitoring.keys() - {"s3MonitoringConfiguration"}), *(s3.keys() - {"logUri"})]
    settings: dict[str, str] = {}
    for each in told.get("applicationConfiguration", []):
        if each["classification"] != _DEFAULTS or each.get("configurations"):
            others.append(f"the classification {each['classification']}")
        settings |= each.get("properties", {})
    if others:
        raise _invalid(
            f"The local AWS endpoint does not take {', '.join(sorted(others))}: only {_DEFAULTS} and a logUri in S3."
        )
    return settings, s3.get("logUri", "")


def _state(run: Run) -> str:
    return _STATES.get(run.state, run.state)


def _known(request: dict[str, Any]) -> None:
    if request["applicationId"] != APPLICATION:
        raise _missing(f"Application {request['applicationId']} does not exist")


def _missing(message: str) -> AwsError:
    return AwsError("ResourceNotFoundException", message, status=404)


def _invalid(message: str) -> AwsError:
    return AwsError("ValidationException", message)
