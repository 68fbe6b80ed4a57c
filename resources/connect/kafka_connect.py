"""Self-managed Kafka Connect over REST, as a Dagster resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic

import dagster as dg
from pydantic import Field

from resources.connect.connector_interface import FAILED, ConnectorStatus, PutOutcome
from resources.connect.rest_client import ConnectRestClient
from resources.connect.rest_responses import OffsetsResponse, Plugin, StatusResponse, ValidationResponse
from resources.errors import ConnectorFailed, ConnectorMissing
from resources.waiting import until

# FAILED has to last this long to count: right after an update, the status can still be that of the previous tasks.
SETTLE_SECONDS = 3.0


@dataclass(frozen=True)
class Validation:
    """The plugin's validation result for a configuration."""

    errors: Mapping[str, tuple[str, ...]]
    """The error messages, by name of the setting."""
    defined: frozenset[str]
    """The settings that the plugin and Connect define."""


class KafkaConnect(dg.ConfigurableResource):  # type: ignore[type-arg]
    """A Kafka Connect cluster with its REST interface (implements `connector_interface.Connectors`).

    Usage:

        connect = KafkaConnect(url="http://127.0.0.1:8083")
        connect.put("orders", {"connector.class": "io.debezium.connector.postgresql.PostgresConnector", …})
    """

    url: str
    user: str = Field(default="", description="Empty for workers that require no password.")
    password: str = Field(default="", repr=False, description="Bind an EnvVar: a literal is shown in Dagster's UI.")
    hint: str = Field(default="", description="A sentence that is appended to connection errors.")
    timeout_seconds: float = Field(default=30.0, gt=0, description="Timeout of one request.")
    rebalance_seconds: float = Field(
        default=60.0,
        gt=0,
        description="How long a request is retried while the workers start or rebalance (HTTP 409 or 503), "
        "and how long a connector may take to stop or to be deleted.",
    )

    @property
    def _rest(self) -> ConnectRestClient:
        # Outside of Dagster, EnvVars are not resolved.
        password = self.password.get_value() if isinstance(self.password, dg.EnvVar) else self.password
        login = (self.user, password or "") if self.user else None
        return ConnectRestClient(self.url.rstrip("/"), self.timeout_seconds, self.rebalance_seconds, self.hint, login)

    def get(self, name: str) -> dict[str, str] | None:
        """Return the connector's configuration as it was put, None if there is no connector of that name."""
        return self._rest.config(name)

    def put(self, name: str, config: Mapping[str, str]) -> PutOutcome:
        """Create, update or resume the connector so that it runs with `config`.

        Changes nothing if it already does. Resuming a stopped or paused connector counts as an update.

        Raises:
            ConnectorConfigInvalid: the connector rejects the configuration.
        """
        wanted = {"name": name, **config}
        current = self.get(name)
        # Read the status before the update: after it, a stopped connector is UNASSIGNED for a moment.
        status = self.status(name) if current is not None else None
        idle = status is not None and status.state in ("STOPPED", "PAUSED")
        if current != wanted:
            self._rest.put_config(name, wanted)
        if idle:
            self._rest.resume(name)
        if current is None:
            return "created"
        return "updated" if current != wanted or idle else "unchanged"

    def plugins(self) -> frozenset[str]:
        """Return the connector classes that the worker can run."""
        return frozenset(Plugin.model_validate(each).class_name for each in self._rest.plugins())

    def validate_config(self, connector_class: str, config: Mapping[str, str]) -> Validation:
        """Return the plugin's validation of `config`, without errors if the plugin would accept it.

        Debezium's validation connects to the database.
        """
        plugin = connector_class.rsplit(".", 1)[-1]
        body = {"name": "validation", **config, "connector.class": connector_class}
        response = ValidationResponse.model_validate(self._rest.validate(plugin, body))
        return Validation(response.errors(), response.names())

    def status(self, name: str) -> ConnectorStatus | None:
        """Return the state of the connector and its tasks, None if there is no connector of that name."""
        answer = self._rest.status(name)
        return StatusResponse.model_validate(answer).status() if answer is not None else None

    def wait_running(self, name: str, timeout_seconds: float = 120.0) -> ConnectorStatus:
        """Wait until the connector and its tasks are RUNNING.

        Raises:
            ConnectorMissing: there is no connector of that name.
            ConnectorFailed: the connector or a task stays FAILED; the message contains the cause from its trace.
            WaitTimedOut: they are not RUNNING in time.
        """
        failed_since: float | None = None

        def current() -> ConnectorStatus:
            nonlocal failed_since
            status = self._present(name)
            if status.state != FAILED and not status.failed_tasks:
                failed_since = None
            elif failed_since is None:
                failed_since = monotonic()
            elif monotonic() - failed_since >= SETTLE_SECONDS:
                raise ConnectorFailed(f"Connector {status}. Fix the cause, then restart the connector.")
            return status

        return until(
            current,
            ConnectorStatus.is_running,
            seconds=timeout_seconds,
            what=f"connector {name} and its tasks to run",
            hint=self.hint,
        )

    def can_restart(self, status: ConnectorStatus) -> bool:  # noqa: ARG002
        """Return True: Connect can restart a connector in any state."""
        return True

    def restart_failed(self, name: str) -> tuple[int, ...]:
        """Restart the connector and the tasks that are FAILED; return the ids of the restarted tasks.

        Raises:
            ConnectorMissing: there is no connector of that name.
        """
        status = self._present(name)
        if status.state != FAILED and not status.failed_tasks:
            return ()
        self._rest.restart_failed(name)
        return tuple(task.id for task in status.failed_tasks)

    def reports_offsets(self, name: str) -> bool:
        """Return whether the connector exists: Connect reports the offsets of existing connectors only."""
        return self.get(name) is not None

    def offsets(self, name: str) -> tuple[dict[str, object], ...]:
        """Return the connector's stored source offsets, one for each source partition."""
        return OffsetsResponse.model_validate(self._rest.offsets(name)).stored()

    def ensure_stopped(self, name: str, config: Mapping[str, str]) -> None:
        """Create the connector if it does not exist, and stop it, so that its offsets can be read and deleted.

        Raises:
            ConnectorConfigInvalid: the connector does not exist and the plugin rejects the configuration.
        """
        if self.get(name) is None:
            self._rest.create_stopped(name, {"name": name, **config})
        self._stop(name)

    def delete_offsets(self, name: str) -> None:
        """Delete the stored offsets of a stopped connector, which then starts with a snapshot."""
        self._rest.delete_offsets(name)

    def delete(self, name: str, *, offsets: bool = True) -> bool:
        """Delete the connector and, with `offsets`, its stored offsets; wait until it is gone.

        Without stored offsets, a connector created under the same name starts with a snapshot. The caller drops the
        replication slot.

        Returns:
            whether the connector existed.
        """
        if self.get(name) is None:
            return False
        if offsets:
            self._stop(name)
            self._rest.delete_offsets(name)
        self._rest.delete(name)
        until(
            lambda: (self.get(name), self.status(name)),
            lambda found: found == (None, None),
            seconds=self.rebalance_seconds,
            what=f"connector {name} to be deleted",
            state=lambda found: found[1] or "it still has a configuration",
            hint=self.hint,
        )
        return True

    def _stop(self, name: str) -> None:
        """Stop the connector and wait until its tasks have ended."""
        self._rest.stop(name)
        until(
            lambda: self._present(name),
            lambda status: status.state == "STOPPED" and not status.tasks,
            seconds=self.rebalance_seconds,
            what=f"connector {name} to stop",
            hint=self.hint,
        )

    def _present(self, name: str) -> ConnectorStatus:
        status = self.status(name)
        if status is None:
            # A new connector has a configuration before it has a status.
            if self.get(name) is not None:
                return ConnectorStatus(name, "UNASSIGNED", ())
            raise ConnectorMissing(
                f"Cannot use connector {name}: Kafka Connect at {self.url} has no such connector. Deploy it first."
            )
        return status
