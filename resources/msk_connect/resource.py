"""Amazon MSK Connect as a Dagster resource that runs connectors."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

from pydantic import Field, PrivateAttr

from resources.aws.aws_resource import AwsRequestFailed, AwsResource
from resources.connect.connector_interface import FAILED, RUNNING, ConnectorStatus, PutOutcome, TaskStatus
from resources.connect.offsets_topic import StoredOffsets
from resources.errors import ConnectorFailed, ConnectorMissing
from resources.kafka.resource import Kafka
from resources.msk_connect import connector_request, connector_tags, connector_tasks
from resources.msk_connect.connector_request import ConnectSettings
from resources.waiting import until

_SETTLED = frozenset({RUNNING, FAILED, "PAUSED"})
_IN_PROGRESS = ("PENDING", "_IN_PROGRESS")


class MskConnect(AwsResource):
    """Connectors on MSK Connect (implements `connector_interface.Connectors`).

    Every method raises Unreachable, AccessRefused or AwsRequestFailed if a request fails, and WaitTimedOut if a change
    of a connector takes longer than `change_seconds`.

    Usage:

        connect = MskConnect(region="eu-west-1", settings=settings, kafka=kafka)
        connect.put("orders", {"connector.class": "io.debezium.connector.postgresql.PostgresConnector", …})
    """

    settings: ConnectSettings
    kafka: Kafka
    """The cluster of the connectors and of their offsets topics."""
    poll_seconds: float = Field(default=10.0, gt=0)
    change_seconds: float = Field(default=1800.0, gt=0, description="The timeout of a connector's creation or change.")

    _topics: dict[str, str] = PrivateAttr(default_factory=dict)

    def get(self, name: str) -> dict[str, str] | None:
        """Return the connector's configuration, None if there is no connector of that name."""
        found = self._describe(name)
        return None if found is None else dict(found["connectorConfiguration"])

    def put(self, name: str, config: Mapping[str, str]) -> PutOutcome:
        """Create, update or resume the connector so that it runs with `config` and the resource's settings.

        Changes nothing if it already does. Updates the connector in place where MSK Connect supports that. Otherwise,
        and if it is FAILED, deletes it and re-creates it under its name; its offsets stay. Waits for the end of an
        update, but not for a new connector.

        Raises:
            ConnectorConfigInvalid: no plugin has the connector's class, or it has no worker configuration.
            ConnectorFailed: a change failed or was rolled back; the message contains MSK Connect's reason.
        """
        wanted = connector_request.create_request(self.settings, name, config, self.kafka.servers())
        found = self._settled(name)
        if found is None:
            self._create(wanted)
            return "created"
        if found["connectorState"] == FAILED or connector_request.unchangeable_differences(wanted, found):
            self._remove(name, found["connectorArn"])
            self._create(wanted)
            return "updated"
        tagged = self._tag(found["connectorArn"])
        resumed = found["connectorState"] == "PAUSED"
        if resumed:
            self._change(name, "resume_connector", connectorArn=found["connectorArn"])
        changes: list[dict[str, Any]] = []
        if dict(found["connectorConfiguration"]) != wanted["connectorConfiguration"]:
            changes.append({"connectorConfiguration": wanted["connectorConfiguration"]})
        if worker := connector_request.worker_changes(wanted, found):
            changes.append(worker)
        for change in changes:
            current = self._present(name)
            version = {"connectorArn": current["connectorArn"], "currentVersion": current["currentVersion"]}
            self._change(name, "update_connector", **version, **change)
        return "updated" if changes or resumed or tagged else "unchanged"

    def status(self, name: str) -> ConnectorStatus | None:
        """Return the connector's state, with the reason if it is FAILED; None if there is no connector of that name.

        The status contains the tasks if the connector is RUNNING and CloudWatch has counted them since its last change.
        """
        found = self._describe(name)
        if found is None:
            return None
        why = found.get("stateDescription", {})
        reason = ": ".join(filter(None, (why.get("code"), why.get("message")))) or None
        tasks = self._tasks(found)
        return ConnectorStatus(name, found["connectorState"], tasks or (), reason, tasks_known=tasks is not None)

    def wait_running(self, name: str, timeout_seconds: float = 1800.0) -> ConnectorStatus:
        """Wait until the connector is RUNNING, and its tasks if CloudWatch has counted them.

        Raises:
            ConnectorMissing: there is no connector of that name.
            ConnectorFailed: the connector is FAILED, or CloudWatch has counted a failed task.
            WaitTimedOut: they are not RUNNING in time.
        """

        def current() -> ConnectorStatus:
            status = self.status(name)
            if status is None:
                raise self._missing(name)
            if status.state == FAILED or status.failed_tasks:
                raise ConnectorFailed(
                    f"Connector {status}. Fix the cause (see the log group {self.settings.log_group}), then"
                    " deploy the connector again."
                )
            return status

        return until(
            current,
            ConnectorStatus.is_running,
            seconds=timeout_seconds,
            what=f"connector {name} to run",
            hint=self.hint,
            pause_seconds=self.poll_seconds,
        )

    def can_restart(self, status: ConnectorStatus) -> bool:
        """Return whether the connector is RUNNING: MSK Connect cannot restart a connector in another state.

        https://docs.aws.amazon.com/msk/latest/developerguide/mkc-restart-connector.html
        """
        return status.state == RUNNING

    def restart_failed(self, name: str) -> tuple[int, ...]:
        """Restart the FAILED tasks of a RUNNING connector; return their numbers (see connector_tasks.tasks()).

        Does not wait: the operation takes minutes, and status() shows the result later.
        """
        found = self._present(name)
        failed = tuple(task.id for task in self._tasks(found) or () if task.state == FAILED)
        if failed:
            arn = found["connectorArn"]
            with self.translate_errors(f"restart the connector {arn}"):
                self.client("kafkaconnect").restart_connector(connectorArn=arn, onlyFailedTasks=True)
        return failed

    def ensure_stopped(self, name: str, config: Mapping[str, str]) -> None:  # noqa: ARG002
        """Delete the connector, if there is one: MSK Connect cannot stop it, and a paused connector keeps its tasks.

        Its offsets stay; put() re-creates it.
        """
        self.delete(name, offsets=False)

    def reports_offsets(self, name: str) -> bool:  # noqa: ARG002
        """Return True: the offsets are in a topic, whether the connector exists or not."""
        return True

    def offsets(self, name: str) -> tuple[dict[str, object], ...]:
        """Return the source offsets that the connector's workers have stored, one for each source partition."""
        return self._offsets(name).read(name)

    def delete_offsets(self, name: str) -> None:
        """Delete the stored offsets of a stopped connector, which then starts with a snapshot."""
        self._offsets(name).delete(name)

    def delete(self, name: str, *, offsets: bool = True) -> bool:
        """Delete the connector and wait until it is gone, then delete its offsets; return whether there was either."""
        found = self._settled(name)
        if found is not None:
            self._remove(name, found["connectorArn"])
        deleted = self._offsets(name).delete(name) if offsets else 0
        return found is not None or deleted > 0

    def _offsets(self, name: str) -> StoredOffsets:
        if name not in self._topics:
            arn = connector_request.worker_configuration(self.settings, name).arn
            with self.translate_errors(f"describe the worker configuration {arn}"):
                found = self.client("kafkaconnect").describe_worker_configuration(workerConfigurationArn=arn)
            # MSK Connect creates only one revision of a worker configuration so far.
            properties = b64decode(found["latestRevision"]["propertiesFileContent"]).decode()
            self._topics[name] = connector_request.offsets_topic(arn, properties)
        return StoredOffsets(self.kafka, self._topics[name])

    def _tasks(self, found: Mapping[str, Any]) -> tuple[TaskStatus, ...] | None:
        """Return a RUNNING connector's tasks, counted after its last change or restart; None if not known yet."""
        if found["connectorState"] != RUNNING:
            return None
        name, arn = found["connectorName"], found["connectorArn"]
        with self.translate_errors(f"list the operations of the connector {arn}"):
            pages = self.client("kafkaconnect").get_paginator("list_connector_operations").paginate(connectorArn=arn)
            operations = [each for page in pages for each in page["connectorOperations"]]
        if any("endTime" not in each for each in operations):
            return None
        ends = [each["endTime"] for each in operations]
        with self.translate_errors(f"read the metrics of the connector {name}"):
            return connector_tasks.tasks(
                self.client("cloudwatch"), name, max([found["creationTime"], *ends]), self.settings.log_group
            )

    def _describe(self, name: str) -> dict[str, Any] | None:
        client = self.client("kafkaconnect")
        with self.translate_errors(f"look up the connector {name}"):
            pages = client.get_paginator("list_connectors").paginate(connectorNamePrefix=name)
            listed = (each for page in pages for each in page["connectors"])
            arn = next((each["connectorArn"] for each in listed if each["connectorName"] == name), None)
        if arn is None:
            return None
        try:
            with self.translate_errors(f"describe the connector {arn}"):
                return dict(client.describe_connector(connectorArn=arn))
        except AwsRequestFailed as error:
            if error.code == "NotFoundException":  # deleted meanwhile
                return None
            raise

    def _missing(self, name: str) -> ConnectorMissing:
        return ConnectorMissing(
            f"Cannot use connector {name}: MSK Connect in {self.region} has no such connector. Deploy it first."
        )

    def _present(self, name: str) -> dict[str, Any]:
        found = self._describe(name)
        if found is None:
            raise self._missing(name)
        return found

    def _settled(self, name: str) -> dict[str, Any] | None:
        """Wait until no change is in progress; return the connector, None if it does not exist."""
        return until(
            lambda: self._describe(name),
            lambda found: found is None or found["connectorState"] in _SETTLED,
            seconds=self.change_seconds,
            what=f"the change of connector {name} to end",
            state=lambda found: found and found["connectorState"],
            hint=self.hint,
            pause_seconds=self.poll_seconds,
        )

    def _create(self, wanted: Mapping[str, Any]) -> None:
        with self.translate_errors(f"create the connector {wanted['connectorName']}"):
            self.client("kafkaconnect").create_connector(**wanted)

    def _tag(self, arn: str) -> bool:
        with self.translate_errors(f"tag the connector {arn}"):
            return connector_tags.ensure(self.client("kafkaconnect"), arn, self.settings.tags)

    def _remove(self, name: str, arn: str) -> None:
        with self.translate_errors(f"delete the connector {arn}"):
            self.client("kafkaconnect").delete_connector(connectorArn=arn)
        until(
            lambda: self._describe(name),
            lambda found: found is None,
            seconds=self.change_seconds,
            what=f"connector {name} to be deleted",
            state=lambda found: found and found["connectorState"],
            hint=self.hint,
            pause_seconds=self.poll_seconds,
        )

    def _change(self, name: str, call: str, **parameters: object) -> None:
        """Call a method that starts an operation, and wait for its end. Raises ConnectorFailed if that fails."""
        client = self.client("kafkaconnect")
        with self.translate_errors(f"call {call} for the connector {name}"):
            arn = getattr(client, call)(**parameters)["connectorOperationArn"]

        def current() -> dict[str, Any]:
            with self.translate_errors(f"describe the operation {arn}"):
                return dict(client.describe_connector_operation(connectorOperationArn=arn))

        done = until(
            current,
            lambda found: not found["connectorOperationState"].endswith(_IN_PROGRESS),
            seconds=self.change_seconds,
            what=f"operation {arn} of connector {name} to end",
            state=lambda found: found["connectorOperationState"],
            hint=self.hint,
            pause_seconds=self.poll_seconds,
        )
        if not done["connectorOperationState"].endswith("_COMPLETE") or done["connectorOperationState"].startswith(
            "ROLL"
        ):
            why = done.get("errorInfo", {}).get("message", "MSK Connect gives no reason")
            raise ConnectorFailed(
                f"Cannot change connector {name}: {call} ended as {done['connectorOperationState']}: {why.rstrip('.')}."
                " The connector still runs with its previous configuration. Fix the cause (see the log group"
                f" {self.settings.log_group}), then deploy the connector again."
            )
