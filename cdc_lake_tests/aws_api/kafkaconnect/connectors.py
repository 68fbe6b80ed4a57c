"""MSK Connect's connectors, and the operations that change them, on a Connect worker.

An operation ends when a request describes or lists it or its connector: only then is the worker's state read.
"""

from __future__ import annotations

import uuid
from datetime import UTC, datetime
from threading import RLock
from typing import Any

from cdc_lake_tests.aws_api.kafkaconnect.plugins import Plugins, new_arn, not_found
from cdc_lake_tests.aws_api.rest_protocol import Operation, RestService
from infra.local.aws_api.errors import AwsError
from resources.connect import connector_interface
from resources.errors import ConnectorConfigInvalid

Answer = dict[str, Any]
_IN_PROGRESS = frozenset({"CREATING", "UPDATING", "RESTARTING", "RESUMING"})
_DESCRIBED = ("connectorArn", "connectorName", "connectorState", "creationTime", "currentVersion")
_REQUESTED = (
    *("capacity", "connectorConfiguration", "kafkaCluster", "kafkaConnectVersion", "plugins", "workerConfiguration"),
    *("kafkaClusterClientAuthentication", "kafkaClusterEncryptionInTransit", "logDelivery", "serviceExecutionRoleArn"),
)


class MskConnect:
    """MSK Connect with one worker for all connectors."""

    def __init__(self, worker: connector_interface.Connectors, region: str) -> None:
        self._worker, self._region, self._lock = worker, region, RLock()
        self.plugins = Plugins(region)
        self.connectors: dict[str, Answer] = {}
        """By ARN: the members that AWS describes, `tags`, and the ARN of an operation in progress."""
        self.operations: dict[str, Answer] = {}
        """By ARN; one without endTime is in progress."""
        operations: dict[str, Operation] = {
            **self.plugins.operations,
            "CreateConnector": self._create,
            "DescribeConnector": self._describe,
            "ListConnectors": self._list,
            "UpdateConnector": self._update,
            "ResumeConnector": self._resume,
            "RestartConnector": self._restart,
            "DeleteConnector": self._delete,
            "DescribeConnectorOperation": self._describe_operation,
            "ListConnectorOperations": self._list_operations,
            "ListTagsForResource": lambda request: {"tags": self._connector(request["resourceArn"])["tags"]},
            "TagResource": self._tag,
        }
        self.service = RestService("kafkaconnect", {name: self._locked(each) for name, each in operations.items()})

    def _locked(self, operation: Operation) -> Operation:
        def locked(request: dict[str, Any]) -> Answer:
            with self._lock:
                return operation(request)

        return locked

    def _create(self, request: dict[str, Any]) -> Answer:
        self.plugins.check(request)
        found: Answer = {
            "connectorArn": new_arn(self._region, "connector", request["connectorName"]),
            "connectorName": request["connectorName"],
            "connectorState": "CREATING",
            "creationTime": datetime.now(UTC),
            "currentVersion": _version(),
            "tags": request.get("tags", {}),
            **{name: request[name] for name in _REQUESTED if name in request},
        }
        self._put(found)
        self.connectors[found["connectorArn"]] = found
        return {name: found[name] for name in ("connectorArn", "connectorName", "connectorState")}

    def _describe(self, request: dict[str, Any]) -> Answer:
        found = self._refreshed(self._connector(request["connectorArn"]))
        return {name: found[name] for name in (*_DESCRIBED, *_REQUESTED, "stateDescription") if name in found}

    def _list(self, request: dict[str, Any]) -> Answer:
        prefix = request.get("connectorNamePrefix", "")
        found = [self._refreshed(each) for each in self.connectors.values() if each["connectorName"].startswith(prefix)]
        return {"connectors": [{name: each[name] for name in _DESCRIBED} for each in found]}

    def _update(self, request: dict[str, Any]) -> Answer:
        found = self._require_state(request, "RUNNING")
        if request["currentVersion"] != found["currentVersion"]:
            raise AwsError("BadRequestException", f"The connector's current version is {found['currentVersion']}.")
        changes = {name: request[name] for name in _REQUESTED if name in request}
        if "connectorConfiguration" in changes and len(changes) > 1:
            raise AwsError("BadRequestException", "Specify either connectorConfiguration or worker settings, not both.")
        before = found["connectorConfiguration"]
        found.update(changes, currentVersion=_version())
        if "connectorConfiguration" in changes:
            found["before"] = before
            self._put(found)
        return self._begin_operation(found, "UPDATING", "UPDATE_CONNECTOR_CONFIGURATION")

    def _resume(self, request: dict[str, Any]) -> Answer:
        found = self._require_state(request, "PAUSED")
        self._put(found)
        return self._begin_operation(found, "RESUMING", "RESUME_CONNECTOR")

    def _restart(self, request: dict[str, Any]) -> Answer:
        found = self._require_state(request, "RUNNING")
        self._worker.restart_failed(found["connectorName"])
        return self._begin_operation(found, "RESTARTING", "RESTART_CONNECTOR")

    def _delete(self, request: dict[str, Any]) -> Answer:
        found = self._connector(request["connectorArn"])
        self._worker.delete(found["connectorName"], offsets=False)
        del self.connectors[found["connectorArn"]]
        return {"connectorArn": found["connectorArn"], "connectorState": "DELETING"}

    def _describe_operation(self, request: dict[str, Any]) -> Answer:
        found = self.operations[request["connectorOperationArn"]]
        self._refreshed(self._connector(found["connectorArn"]))
        return found

    def _list_operations(self, request: dict[str, Any]) -> Answer:
        arn = self._refreshed(self._connector(request["connectorArn"]))["connectorArn"]
        return {"connectorOperations": [each for each in self.operations.values() if each["connectorArn"] == arn]}

    def _tag(self, request: dict[str, Any]) -> Answer:
        self._connector(request["resourceArn"])["tags"].update(request["tags"])
        return {}

    def _connector(self, arn: str) -> Answer:
        if arn not in self.connectors:
            raise not_found(arn)
        return self.connectors[arn]

    def _require_state(self, request: dict[str, Any], state: str) -> Answer:
        found = self._refreshed(self._connector(request["connectorArn"]))
        if found["connectorState"] != state:
            raise AwsError("BadRequestException", f"The connector is {found['connectorState']}, not {state}.")
        return found

    def _put(self, connector: Answer) -> None:
        try:
            self._worker.put(connector["connectorName"], connector["connectorConfiguration"])
        except ConnectorConfigInvalid as error:
            connector["fault"] = str(error)

    def _begin_operation(self, connector: Answer, state: str, kind: str) -> Answer:
        """Record an operation of the connector; return the answer to the request that began it."""
        arn = new_arn(self._region, "connector-operation", connector["connectorName"])
        self.operations[arn] = {
            "connectorArn": connector["connectorArn"],
            "connectorOperationArn": arn,
            "connectorOperationState": "PENDING",
            "connectorOperationType": kind,
            "creationTime": datetime.now(UTC),
        }
        connector.update(connectorState=state, operation=arn)
        return {"connectorArn": connector["connectorArn"], "connectorOperationArn": arn}

    def _refreshed(self, connector: Answer) -> Answer:
        """Return the connector, after ending a change that the worker has completed."""
        if connector["connectorState"] not in _IN_PROGRESS:
            return connector
        status = self._worker.status(connector["connectorName"])
        failed = status is not None and (status.state == connector_interface.FAILED or status.failed_tasks)
        fault = connector.pop("fault", None) or (str(status) if failed else None)
        if fault is not None and "before" in connector:
            connector["connectorConfiguration"] = connector.pop("before")
            self._put(connector)
            self._end(connector, "RUNNING", "ROLLBACK_COMPLETE", fault)
        elif fault is not None:
            connector["stateDescription"] = {"code": "InvalidInput", "message": fault}
            self._end(connector, "FAILED", "UPDATE_FAILED", fault)
        elif status is not None and status.is_running():
            self._end(connector, "RUNNING")
        return connector

    def _end(self, connector: Answer, state: str, ended: str | None = None, fault: str | None = None) -> None:
        connector["connectorState"] = state
        connector.pop("before", None)
        operation = self.operations.get(connector.pop("operation", ""))
        if operation is not None:
            kind = operation["connectorOperationType"].partition("_")[0]
            operation.update(connectorOperationState=ended or f"{kind}_COMPLETE", endTime=datetime.now(UTC))
            if fault is not None:
                operation["errorInfo"] = {"code": "ConnectorFailed", "message": fault}


def _version() -> str:
    return uuid.uuid4().hex[:14].upper()
