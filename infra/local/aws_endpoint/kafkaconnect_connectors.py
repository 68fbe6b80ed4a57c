"""MSK Connect's connectors: made, told, changed and deleted through the worker.

Here: their operations. Not here: which state a connector has come to by now (kafkaconnect_progress.py).
"""

from __future__ import annotations

import uuid
from typing import Any

from infra.local.aws_endpoint.connect_worker import Worker
from infra.local.aws_endpoint.errors import AwsError
from infra.local.aws_endpoint.kafkaconnect_progress import Progress
from infra.local.aws_endpoint.kafkaconnect_state import Record, Records
from infra.local.aws_endpoint.rest_json import Operation

Answer = dict[str, Any]

_TOLD = ("capacity", "connectorConfiguration", "connectorDescription", "kafkaCluster", "kafkaConnectVersion")
_TOLD_TOO = ("kafkaClusterClientAuthentication", "kafkaClusterEncryptionInTransit", "logDelivery", "plugins")
_MEMBERS = (*_TOLD, *_TOLD_TOO, "serviceExecutionRoleArn", "workerConfiguration", "networkType")


class Connectors:
    """Connectors and their operations."""

    def __init__(self, records: Records, worker: Worker) -> None:
        self._records, self._worker = records, worker
        self._progress = Progress(records, worker)

    def operations(self) -> dict[str, Operation]:
        """The operations by name."""
        return {
            "CreateConnector": self._create,
            "DescribeConnector": self._describe,
            "ListConnectors": self._list,
            "UpdateConnector": self._update,
            "PauseConnector": lambda request: self._ask(request, "pause", "PAUSING"),
            "ResumeConnector": lambda request: self._ask(request, "resume", "RESUMING"),
            "RestartConnector": self._restart,
            "DeleteConnector": self._delete,
            "DescribeConnectorOperation": self._describe_operation,
            "ListConnectorOperations": self._list_operations,
        }

    def task_states(self) -> dict[str, tuple[str, ...]]:
        """The states of the tasks of each connector that runs."""
        found = {}
        for each in self._records.of("connector"):
            status = self._worker.status(each["name"]) if each["state"] == "RUNNING" else None
            if status is not None:
                found[each["name"]] = status.tasks
        return found

    def _create(self, request: dict[str, Any]) -> Answer:
        for plugin in request["plugins"]:
            found = self._records.get("custom-plugin", plugin["customPlugin"]["customPluginArn"])
            if found["state"] != "ACTIVE":
                raise AwsError("BadRequestException", f"The custom plugin {found['arn']} is {found['state']}.")
        if "workerConfiguration" in request:
            self._records.get("worker-configuration", request["workerConfiguration"]["workerConfigurationArn"])
        made = self._records.add(
            "connector",
            request["connectorName"],
            state="CREATING",
            why=None,
            version=_version(),
            tags=request.get("tags", {}),
            **{name: request[name] for name in _MEMBERS if name in request},
        )
        try:
            self._progress.put(made, made["connectorConfiguration"])
        except AwsError:  # nothing was made: the caller's next try must not find a connector of the name
            self._records.remove(made["arn"])
            raise
        return {"connectorArn": made["arn"], "connectorName": made["name"], "connectorState": "CREATING"}

    def _describe(self, request: dict[str, Any]) -> Answer:
        found = self._progress.looked_at(request["connectorArn"])
        answer: Answer = {
            "connectorArn": found["arn"],
            "connectorName": found["name"],
            "connectorState": found["state"],
            "creationTime": found["created"],
            "currentVersion": found["version"],
            **{name: found[name] for name in _MEMBERS if name in found},
        }
        if found["why"]:
            answer["stateDescription"] = {"code": "InvalidInput", "message": found["why"]}
        return answer

    def _list(self, request: dict[str, Any]) -> Answer:
        found = self._records.of("connector", request.get("connectorNamePrefix", ""))
        names = {"connectorArn": "arn", "connectorName": "name", "creationTime": "created", "currentVersion": "version"}
        listed = []
        for each in filter(None, [self._progress.look(each["arn"]) for each in found]):
            listed.append({**{name: each[own] for name, own in names.items()}, "connectorState": each["state"]})
        return {"connectors": listed}

    def _update(self, request: dict[str, Any]) -> Answer:
        found = self._ready(request["connectorArn"], "RUNNING")
        if request["currentVersion"] != found["version"]:
            raise AwsError("BadRequestException", f"The connector's current version is {found['version']}.")
        config = request.get("connectorConfiguration")
        worker: Record = {
            name: request[name] for name in ("capacity", "plugins", "workerConfiguration") if name in request
        }
        if bool(worker) == (config is not None):
            raise AwsError(
                "BadRequestException", "Specify either connectorConfiguration or settings of the worker, and not both."
            )
        done = self._progress.begin(found, "UPDATE_CONNECTOR_CONFIGURATION" if config else "UPDATE_WORKER_SETTING")
        found["version"] = _version()
        if config is not None:
            found["before"], found["connectorConfiguration"] = found["connectorConfiguration"], config
            found["state"] = "UPDATING"
            self._progress.put(found, config)
        else:
            found.update(worker)
            found["state"] = "UPDATING"
        return {"connectorArn": found["arn"], "connectorState": found["state"], "connectorOperationArn": done["arn"]}

    def _ask(self, request: dict[str, Any], action: str, state: str) -> Answer:
        found = self._ready(request["connectorArn"], "RUNNING" if action == "pause" else "PAUSED")
        self._worker.ask(found["name"], action)
        found["state"] = state
        return self._begun(found, f"{action.upper()}_CONNECTOR")

    def _restart(self, request: dict[str, Any]) -> Answer:
        found = self._ready(request["connectorArn"], "RUNNING")
        failed = "true" if request.get("onlyFailedTasks") else "false"
        self._worker.ask(found["name"], f"restart?includeTasks=true&onlyFailed={failed}")
        found["state"] = "RESTARTING"
        return self._begun(found, "RESTART_CONNECTOR")

    def _begun(self, connector: Record, kind: str) -> Answer:
        return {"connectorArn": connector["arn"], "connectorOperationArn": self._progress.begin(connector, kind)["arn"]}

    def _delete(self, request: dict[str, Any]) -> Answer:
        found = self._records.get("connector", request["connectorArn"])
        self._worker.delete(found["name"])
        found["state"] = "DELETING"
        return {"connectorArn": found["arn"], "connectorState": "DELETING"}

    def _describe_operation(self, request: dict[str, Any]) -> Answer:
        found = self._records.get("connector-operation", request["connectorOperationArn"])
        if any(each["arn"] == found["connector"] for each in self._records.of("connector")):
            self._progress.looked_at(found["connector"])
        answer: Answer = {"connectorArn": found["connector"], **_told(found)}
        if found["why"]:
            answer["errorInfo"] = {"code": "ConnectorFailed", "message": found["why"]}
        return answer

    def _list_operations(self, request: dict[str, Any]) -> Answer:
        found = self._progress.looked_at(request["connectorArn"])
        listed = [each for each in self._records.of("connector-operation") if each["connector"] == found["arn"]]
        return {"connectorOperations": [_told(each) for each in reversed(listed)]}

    def _ready(self, arn: str, *states: str) -> Record:
        found = self._progress.looked_at(arn)
        if found["state"] not in states:
            raise AwsError(
                "BadRequestException", f"The connector is {found['state']}: this takes {' or '.join(states)}."
            )
        return found


def _told(operation: Record) -> Answer:
    answer: Answer = {
        "connectorOperationArn": operation["arn"],
        "connectorOperationState": operation["state"],
        "connectorOperationType": operation["type"],
        "creationTime": operation["created"],
    }
    return {**answer, "endTime": operation["ended"]} if "ended" in operation else answer


def _version() -> str:
    return uuid.uuid4().hex[:14].upper()
