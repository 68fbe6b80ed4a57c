"""EMR's API for steps of one cluster. A step runs spark-submit in client mode."""

from __future__ import annotations

from typing import Any

from cdc_lake_tests.aws_api.emr.runs import Run, Runs, new_id, spark_job
from infra.local.aws_api.errors import AwsError
from infra.local.aws_api.json_protocol import JsonService

CLUSTER = "j-LOCALCDCLAKE1"
_RUNNER = "command-runner.jar"
_STATES = {"SUCCEEDED": "COMPLETED"}

Answer = dict[str, Any]


class EmrSteps:
    """Steps of the cluster; `logs` is its log URI, s3://…/."""

    def __init__(self, runs: Runs, logs: str) -> None:
        self._runs, self._logs = runs, logs
        operations = {
            "AddJobFlowSteps": self._add,
            "DescribeStep": lambda request: {"Step": self._described(self._run(request, request["StepId"]))},
            "ListSteps": self._list,
            "CancelSteps": self._cancel,
            "DescribeCluster": self._cluster,
        }
        self.service = JsonService("emr", operations)

    def _add(self, request: dict[str, Any]) -> Answer:
        _check_cluster(request["JobFlowId"])
        [step] = request["Steps"]
        program, *args = step["HadoopJarStep"]["Args"]
        if (step["HadoopJarStep"]["Jar"], program, step["ActionOnFailure"]) != (_RUNNER, "spark-submit", "CONTINUE"):
            raise _invalid(f"Cannot run this step: it is not spark-submit by {_RUNNER} with ActionOnFailure CONTINUE.")
        return {"StepIds": [self._runs.start(Run(new_id("s-"), step["Name"], spark_job(args))).id]}

    def _list(self, request: dict[str, Any]) -> Answer:
        _check_cluster(request["ClusterId"])
        return {"Steps": [self._described(each) for each in reversed(self._runs.all.values())]}

    def _cancel(self, request: dict[str, Any]) -> Answer:
        [step_id] = request["StepIds"]
        run = self._run(request, step_id)
        if self._runs.cancel(run):
            return {"CancelStepsInfoList": [{"StepId": run.id, "Status": "SUBMITTED"}]}
        reason = f"Step is in {_state(run)} state and cannot be cancelled."
        return {"CancelStepsInfoList": [{"StepId": run.id, "Status": "FAILED", "Reason": reason}]}

    def _cluster(self, request: dict[str, Any]) -> Answer:
        _check_cluster(request["ClusterId"])
        return {"Cluster": {"Id": CLUSTER, "Name": "local", "Status": {"State": "WAITING"}, "LogUri": self._logs}}

    def _run(self, request: dict[str, Any], step_id: str) -> Run:
        _check_cluster(request["ClusterId"])
        if step_id not in self._runs.all:
            raise _invalid(f"Step id '{step_id}' is not valid.")
        return self._runs.all[step_id]

    def _described(self, run: Run) -> Answer:
        status: Answer = {"State": _state(run)}
        if run.state == "CANCELLED":
            status["StateChangeReason"] = {"Message": run.reason}
        if run.state == "FAILED":
            # AWS reads a reason from the log, and says so if it finds none.
            log = f"{self._logs}{CLUSTER}/steps/{run.id}/stderr.gz"
            status["FailureDetails"] = {"Reason": "Unknown Error.", "Message": run.reason, "LogFile": log}
        return {"Id": run.id, "Name": run.name, "ActionOnFailure": "CONTINUE", "Status": status}


def _state(run: Run) -> str:
    return _STATES.get(run.state, run.state)


def _check_cluster(cluster: str) -> None:
    if cluster != CLUSTER:
        raise _invalid(f"Cluster id '{cluster}' is not valid.")


def _invalid(message: str) -> AwsError:
    return AwsError("InvalidRequestException", message)
