"""MSK Connect's API over the real Connect worker of the stack.

Here: custom plugins, worker configurations, connectors and their operations, in the states that AWS tells. As in AWS
there is nothing else: no REST interface, no status of a task, no offsets.

What differs from AWS, since one worker that is there already runs everything:

- A plugin's archive has to be in S3 and to be a zip with jars; the worker runs the jars that it was started with, and a
  connector whose class it lacks becomes FAILED. Worker configurations are kept and not applied.
- Capacity, role, network and logs are checked by the API's model and kept; they do nothing.
- A connector is made within seconds, not minutes.
- Whether the health checks after an update look at more than this, AWS does not say: here an update whose connector or
  task is FAILED is rolled back.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable
from threading import RLock
from typing import Any

from infra.local.aws_endpoint.connect_worker import RefusedError, Worker
from infra.local.aws_endpoint.errors import AwsError
from infra.local.aws_endpoint.kafkaconnect_state import Record, Records
from infra.local.aws_endpoint.rest_json import Operation

Answer = dict[str, Any]
CheckArchive = Callable[[str, str], str | None]
"""Bucket and key of a plugin's archive to what is wrong with it, None where nothing is."""

_BUSY = frozenset({"CREATING", "UPDATING", "DELETING", "RESTARTING", "PAUSING", "RESUMING"})
_TOLD = ("capacity", "connectorConfiguration", "connectorDescription", "kafkaCluster", "kafkaConnectVersion")
_TOLD_TOO = ("kafkaClusterClientAuthentication", "kafkaClusterEncryptionInTransit", "logDelivery", "plugins")
_MEMBERS = (*_TOLD, *_TOLD_TOO, "serviceExecutionRoleArn", "workerConfiguration", "networkType")


class KafkaConnectApi:
    """The offered operations: parameters in, members of the answer out."""

    def __init__(self, records: Records, worker: Worker, check_archive: CheckArchive) -> None:
        self._records, self._worker, self._check_archive = records, worker, check_archive
        self._lock = RLock()
        offered: dict[str, Operation] = {
            "CreateCustomPlugin": self._create_plugin,
            "DescribeCustomPlugin": self._describe_plugin,
            "ListCustomPlugins": self._list_plugins,
            "DeleteCustomPlugin": self._delete_plugin,
            "CreateWorkerConfiguration": self._create_worker_configuration,
            "DescribeWorkerConfiguration": self._describe_worker_configuration,
            "ListWorkerConfigurations": self._list_worker_configurations,
            "CreateConnector": self._create,
            "DescribeConnector": self._describe,
            "ListConnectors": self._list,
            "UpdateConnector": self._update,
            "PauseConnector": lambda request: self._ask(request, "pause", "PAUSING"),
            "ResumeConnector": lambda request: self._ask(request, "resume", "RESUMING"),
            "RestartConnector": self._restart,
            "DeleteConnector": self._delete,
            "DescribeConnectorOperation": self._describe_operation,
        }
        self.operations = {name: self._alone(operation) for name, operation in offered.items()}

    def _alone(self, operation: Operation) -> Operation:
        def alone(request: dict[str, Any]) -> Answer:
            with self._lock:
                answer = operation(request)
                self._records.save()
                return answer

        return alone

    def _create_plugin(self, request: dict[str, Any]) -> Answer:
        at = request["location"]["s3Location"]
        wrong = self._check_archive(at["bucketArn"].rpartition(":")[2], at["fileKey"])
        made = self._records.add(
            "custom-plugin",
            request["name"],
            state="CREATE_FAILED" if wrong else "ACTIVE",
            why=wrong,
            contentType=request["contentType"],
            location=request["location"],
        )
        return {
            "customPluginArn": made["arn"],
            "customPluginState": "CREATING",
            "name": made["name"],
            "revision": 1,
        }

    def _describe_plugin(self, request: dict[str, Any]) -> Answer:
        found = self._records.get("custom-plugin", request["customPluginArn"])
        answer: Answer = {
            "customPluginArn": found["arn"],
            "customPluginState": found["state"],
            "name": found["name"],
            "creationTime": found["created"],
            "latestRevision": {
                "contentType": found["contentType"],
                "creationTime": found["created"],
                "location": found["location"],
                "revision": 1,
            },
        }
        if found["why"]:
            answer["stateDescription"] = {"code": "InvalidInput", "message": found["why"]}
        return answer

    def _list_plugins(self, request: dict[str, Any]) -> Answer:
        found = self._records.of("custom-plugin", request.get("namePrefix", ""))
        listed = [
            {"customPluginArn": each["arn"], "customPluginState": each["state"], "name": each["name"]} for each in found
        ]
        return {"customPlugins": listed}

    def _delete_plugin(self, request: dict[str, Any]) -> Answer:
        found = self._records.get("custom-plugin", request["customPluginArn"])
        used = [each["name"] for each in self._records.of("connector") if found["arn"] in str(each["plugins"])]
        if used:
            raise AwsError("BadRequestException", f"The custom plugin is used by connector {', '.join(used)}.")
        self._records.remove(found["arn"])
        return {"customPluginArn": found["arn"], "customPluginState": "DELETING"}

    def _create_worker_configuration(self, request: dict[str, Any]) -> Answer:
        made = self._records.add("worker-configuration", request["name"], properties=request["propertiesFileContent"])
        return {
            "workerConfigurationArn": made["arn"],
            "name": made["name"],
            "creationTime": made["created"],
            "latestRevision": {"creationTime": made["created"], "revision": 1},
            "workerConfigurationState": "ACTIVE",
        }

    def _describe_worker_configuration(self, request: dict[str, Any]) -> Answer:
        found = self._records.get("worker-configuration", request["workerConfigurationArn"])
        revision = {
            "creationTime": found["created"],
            "propertiesFileContent": found["properties"],
            "revision": 1,
        }
        return {
            "workerConfigurationArn": found["arn"],
            "name": found["name"],
            "creationTime": found["created"],
            "latestRevision": revision,
            "workerConfigurationState": "ACTIVE",
        }

    def _list_worker_configurations(self, request: dict[str, Any]) -> Answer:
        found = self._records.of("worker-configuration", request.get("namePrefix", ""))
        return {
            "workerConfigurations": [{"workerConfigurationArn": each["arn"], "name": each["name"]} for each in found]
        }

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
            **{name: request[name] for name in _MEMBERS if name in request},
        )
        self._put(made, made["connectorConfiguration"])
        return {"connectorArn": made["arn"], "connectorName": made["name"], "connectorState": "CREATING"}

    def _put(self, connector: Record, config: dict[str, str]) -> None:
        try:
            self._worker.put(connector["name"], {**config, "name": connector["name"]})
        except RefusedError as error:
            connector["refused"] = str(error)

    def _describe(self, request: dict[str, Any]) -> Answer:
        found = self._looked_at(request["connectorArn"])
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
        for each in filter(None, [self._look(each["arn"]) for each in found]):
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
        done = self._operation(found, "UPDATE_CONNECTOR_CONFIGURATION" if config else "UPDATE_WORKER_SETTING")
        found["version"] = _version()
        if config is not None:
            found["before"], found["connectorConfiguration"] = found["connectorConfiguration"], config
            found["state"] = "UPDATING"
            self._put(found, config)
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
        found = self._ready(request["connectorArn"], "RUNNING", "FAILED")
        failed = "true" if request.get("onlyFailedTasks") else "false"
        self._worker.ask(found["name"], f"restart?includeTasks=true&onlyFailed={failed}")
        found["state"] = "RESTARTING"
        return self._begun(found, "RESTART_CONNECTOR")

    def _begun(self, connector: Record, kind: str) -> Answer:
        return {"connectorArn": connector["arn"], "connectorOperationArn": self._operation(connector, kind)["arn"]}

    def _delete(self, request: dict[str, Any]) -> Answer:
        found = self._records.get("connector", request["connectorArn"])
        self._worker.delete(found["name"])
        found["state"] = "DELETING"
        return {"connectorArn": found["arn"], "connectorState": "DELETING"}

    def _operation(self, connector: Record, kind: str) -> Record:
        """A new operation, the one that is under way at the connector."""
        made = self._records.add(
            "connector-operation", connector["name"], type=kind, state="PENDING", connector=connector["arn"], why=None
        )
        connector["operation"] = made["arn"]
        return made

    def _describe_operation(self, request: dict[str, Any]) -> Answer:
        found = self._records.get("connector-operation", request["connectorOperationArn"])
        if any(each["arn"] == found["connector"] for each in self._records.of("connector")):
            self._looked_at(found["connector"])
        answer: Answer = {
            "connectorArn": found["connector"],
            "connectorOperationArn": found["arn"],
            "connectorOperationState": found["state"],
            "connectorOperationType": found["type"],
            "creationTime": found["created"],
        }
        if found["why"]:
            answer["errorInfo"] = {"code": "ConnectorFailed", "message": found["why"]}
        return answer

    def _ready(self, arn: str, *states: str) -> Record:
        found = self._looked_at(arn)
        if found["state"] not in states:
            raise AwsError(
                "BadRequestException", f"The connector is {found['state']}: this takes {' or '.join(states)}."
            )
        return found

    def _looked_at(self, arn: str) -> Record:
        """A connector as it is by now. Raises NotFoundException, also for one that is gone by now."""
        return self._look(arn) or self._records.get("connector", arn)

    def _look(self, arn: str) -> Record | None:
        """A connector in the state that the worker says by now; None for one that is gone by now."""
        found = self._records.get("connector", arn)
        if found["state"] not in _BUSY:
            return found
        status = self._worker.status(found["name"])
        if found["state"] == "DELETING":
            if status is None:
                self._records.remove(arn)
            return None if status is None else found
        wrong = found.pop("refused", None) or (status.trace if status is not None and status.failed else None)
        if wrong is not None:
            self._failed(found, wrong.strip())
        elif found["state"] == "PAUSING":
            if status is not None and status.state == "PAUSED":
                self._end(found, "PAUSED")
        elif status is not None and status.running:
            self._end(found, "RUNNING")
        return found

    def _failed(self, found: Record, wrong: str) -> None:
        if found["state"] == "UPDATING" and "before" in found:
            found["connectorConfiguration"] = found.pop("before")
            self._put(found, found["connectorConfiguration"])
            self._end(found, "RUNNING", "ROLLBACK_COMPLETE", wrong)
        else:
            found["why"] = wrong
            self._end(found, "FAILED", "UPDATE_FAILED", wrong)

    def _end(self, found: Record, state: str, operation: str | None = None, wrong: str | None = None) -> None:
        found["state"] = state
        found["why"] = wrong if state == "FAILED" else None
        found.pop("before", None)
        at = found.pop("operation", None)
        if at is None:
            return
        done = self._records.get("connector-operation", at)
        family = done["type"].partition("_")[0]
        done["state"], done["why"] = operation or f"{family}_COMPLETE", wrong


def _version() -> str:
    return uuid.uuid4().hex[:14].upper()
