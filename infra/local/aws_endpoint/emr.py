"""EMR's API: steps of the one cluster that there is, run by spark-submit on this machine.

Here: AddJobFlowSteps, DescribeStep, ListSteps, CancelSteps, and the cluster's DescribeCluster and ListClusters. What
makes or changes clusters is refused: on AWS that is the CDK's (infra/aws), and here it is there from the start.

What differs from AWS: a step is spark-submit by command-runner.jar in client mode (spark_submit.py has the arguments
that are taken) and CONTINUE; steps begin within a second; logs are there at the step's end, not minutes later; what
does not heed SEND_INTERRUPT is killed after a while.
"""

from __future__ import annotations

import secrets
import signal
import string
from typing import Any

from infra.local.aws_endpoint.errors import AwsError
from infra.local.aws_endpoint.json_rpc import Operation
from infra.local.aws_endpoint.spark_runs import Run, SparkRuns
from infra.local.aws_endpoint.spark_submit import NotTakenError, parsed

CLUSTER = "j-LOCALCDCLAKE1"
RELEASE = "emr-7.9.0"
ACCOUNT = "123456789012"
STEP_LOGS = "{logs}{cluster}/steps/{step}/"
_RUNNER = "command-runner.jar"
_STATES = {"SUCCEEDED": "COMPLETED", "CANCELLING": "CANCEL_PENDING"}
# https://docs.aws.amazon.com/emr/latest/ManagementGuide/emr-cancel-steps.html
_SIGNALS = {"SEND_INTERRUPT": signal.SIGTERM, "TERMINATE_PROCESS": signal.SIGKILL}
_PAGE = 50  # AWS's, too
_MOST_IDS = 10  # of ListSteps, AWS's too
_ALPHABET = string.ascii_uppercase + string.digits

Answer = dict[str, Any]


class EmrApi:
    """The offered operations: parameters in, members of the answer out. `logs` is the cluster's log URI, s3://…/."""

    def __init__(self, runs: SparkRuns, region: str, logs: str) -> None:
        self._runs, self._region, self._logs = runs, region, logs
        self.operations: dict[str, Operation] = {
            "AddJobFlowSteps": self._add,
            "DescribeStep": self._describe,
            "ListSteps": self._list,
            "CancelSteps": self._cancel,
            "DescribeCluster": self._cluster,
            "ListClusters": lambda _: {"Clusters": [self._summary()]},
        }

    def _add(self, request: dict[str, Any]) -> Answer:
        _known(request["JobFlowId"])
        role = {"ExecutionRoleArn": request["ExecutionRoleArn"]} if "ExecutionRoleArn" in request else {}
        # All are looked at before one is started.
        runs = [self._run(step, role) for step in request["Steps"]]
        return {"StepIds": [self._runs.start(run).id for run in runs]}

    def _run(self, step: dict[str, Any], role: dict[str, str]) -> Run:
        jar = step["HadoopJarStep"]
        args = jar.get("Args", [])
        if jar["Jar"] != _RUNNER or jar.get("MainClass") or jar.get("Properties") or args[:1] != ["spark-submit"]:
            raise _invalid(f"The local AWS endpoint takes steps of {_RUNNER} with spark-submit only.")
        if step.get("ActionOnFailure") != "CONTINUE" or "StepMonitoringConfiguration" in step:
            raise _invalid("The local AWS endpoint takes ActionOnFailure CONTINUE only, and the cluster's log URI.")
        try:
            wanted = parsed(args[1:])
        except NotTakenError as error:
            raise _invalid(str(error)) from error
        step_id = "s-" + "".join(secrets.choice(_ALPHABET) for _ in range(20))
        logs = STEP_LOGS.format(logs=self._logs, cluster=CLUSTER, step=step_id)
        return Run(step_id, wanted, {"Name": step["Name"], "Args": args, **role}, logs)

    def _describe(self, request: dict[str, Any]) -> Answer:
        _known(request["ClusterId"])
        return {"Step": _told(self._one(request["StepId"]), whole=True)}

    def _list(self, request: dict[str, Any]) -> Answer:
        _known(request["ClusterId"])
        ids, states = request.get("StepIds"), request.get("StepStates")
        if ids is not None and states is not None:
            raise _invalid("Specify StepIds or StepStates, and not both.")
        if ids is not None and len(ids) > _MOST_IDS:
            raise _invalid(f"StepIds has {len(ids)} ids; at most {_MOST_IDS} are allowed.")
        chosen = [run for run in self._runs.newest_first() if ids is None or run.id in ids]
        steps = [_told(run, whole=False) for run in chosen if states is None or _state(run) in states]
        # The marker is the last id that was given, so that new steps don't move the pages.
        known = [step["Id"] for step in steps]
        marker = request.get("Marker")
        if marker is not None and marker not in known:
            raise _invalid(f"Marker {marker!r} is not valid.")
        rest = steps if marker is None else steps[known.index(marker) + 1 :]
        page: Answer = {"Steps": rest[:_PAGE]}
        return {**page, "Marker": rest[_PAGE - 1]["Id"]} if len(rest) > _PAGE else page

    def _cancel(self, request: dict[str, Any]) -> Answer:
        _known(request["ClusterId"])
        told = []
        for run in [self._one(step_id) for step_id in request["StepIds"]]:
            if self._runs.cancel(run.id, _SIGNALS[request.get("StepCancellationOption", "SEND_INTERRUPT")]):
                told.append({"StepId": run.id, "Status": "SUBMITTED"})
            else:
                reason = f"Step is in {_state(run)} state and can't be cancelled."
                told.append({"StepId": run.id, "Status": "FAILED", "Reason": reason})
        return {"CancelStepsInfoList": told}

    def _one(self, step_id: str) -> Run:
        found = self._runs.get(step_id)
        if found is None:
            raise _invalid(f"Step id '{step_id}' is not valid.")
        return found

    def _summary(self) -> Answer:
        arn = f"arn:aws:elasticmapreduce:{self._region}:{ACCOUNT}:cluster/{CLUSTER}"
        return {"Id": CLUSTER, "Name": "local", "Status": {"State": "WAITING"}, "ClusterArn": arn}

    def _cluster(self, request: dict[str, Any]) -> Answer:
        _known(request["ClusterId"])
        spark = [{"Name": "Spark"}]
        more = {"LogUri": self._logs, "ReleaseLabel": RELEASE, "StepConcurrencyLevel": 1, "Applications": spark}
        return {"Cluster": {**self._summary(), **more}}


def _told(run: Run, *, whole: bool) -> Answer:
    status: Answer = {"State": _state(run), "StateChangeReason": {}, "Timeline": {"CreationDateTime": run.created}}
    if run.started is not None:
        status["Timeline"]["StartDateTime"] = run.started
    if run.ended is not None:
        status["Timeline"]["EndDateTime"] = run.ended
    if run.state == "CANCELLED":
        status["StateChangeReason"]["Message"] = run.reason
    if run.state == "FAILED":
        # AWS reads a reason out of the log, and says so where it finds none.
        status["FailureDetails"] = {
            "Reason": "Unknown Error.",
            "Message": run.reason,
            "LogFile": f"{run.logs}stderr.gz",
        }
    step = {
        "Id": run.id,
        "Name": run.request["Name"],
        "Config": {"Jar": _RUNNER, "Properties": {}, "Args": run.request["Args"]},
        "ActionOnFailure": "CONTINUE",
        "Status": status,
    }
    if whole and "ExecutionRoleArn" in run.request:
        step["ExecutionRoleArn"] = run.request["ExecutionRoleArn"]
    return step


def _state(run: Run) -> str:
    return _STATES.get(run.state, run.state)


def _known(cluster: str) -> None:
    if cluster != CLUSTER:
        raise _invalid(f"Cluster id '{cluster}' is not valid.")


def _invalid(message: str) -> AwsError:
    return AwsError("InvalidRequestException", message)
