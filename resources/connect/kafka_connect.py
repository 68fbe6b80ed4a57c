"""Self-managed Kafka Connect over REST, as a Dagster resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import monotonic

import dagster as dg
from pydantic import Field

from resources.connect.connector_interface import FAILED, ConnectorStatus, PutOutcome
from resources.connect.rest_client import Rest
from resources.connect.rest_responses import OffsetsPage, Plugin, StatusPage, ValidationPage
from resources.errors import ConnectorFailed, ConnectorMissing
from resources.waiting import until

# Right after an update the status can still be that of the tasks before it: FAILED counts once it has lasted.
SETTLE_SECONDS = 3.0


@dataclass(frozen=True)
class Validation:
    """What a plugin says of a configuration."""

    errors: Mapping[str, tuple[str, ...]]
    """By setting."""
    defined: frozenset[str]
    """The settings that it defines."""


class KafkaConnect(dg.ConfigurableResource):  # type: ignore[type-arg]
    """A Kafka Connect cluster with its REST interface (implements `connectors.Connectors`)."""

    url: str
    user: str = Field(default="", description="Empty for workers that ask for no password.")
    password: str = Field(default="", repr=False, description="Bind an EnvVar: a literal is shown in Dagster's UI.")
    hint: str = Field(default="", description="A sentence that is appended to connection errors.")
    timeout_seconds: float = Field(default=30.0, gt=0, description="Of one request.")
    rebalance_seconds: float = Field(default=60.0, gt=0, description="How long to wait out 409 answers.")

    @property
    def _rest(self) -> Rest:
        # Outside of Dagster nobody has resolved the EnvVar.
        password = self.password.get_value() if isinstance(self.password, dg.EnvVar) else self.password
        login = (self.user, password or "") if self.user else None
        return Rest(self.url.rstrip("/"), self.timeout_seconds, self.rebalance_seconds, self.hint, login)

    def names(self) -> tuple[str, ...]:
        """Return the names of all connectors, sorted."""
        return tuple(sorted(self._rest.names()))

    def get(self, name: str) -> dict[str, str] | None:
        """Return the connector's configuration as it was put, None if there is no connector of that name."""
        return self._rest.config(name)

    def put(self, name: str, config: Mapping[str, str]) -> PutOutcome:
        """Make the connector run with `config`.

        What runs is compared first: without a difference nothing is called. A connector that was stopped or
        paused is resumed, which counts as an update.

        Raises:
            ConnectorConfigInvalid: the connector refuses the configuration.
        """
        wanted = {"name": name, **config}
        current = self.get(name)
        # Before the update, which makes a stopped connector UNASSIGNED for a moment.
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
        """Return the classes of the connectors that the worker can run."""
        return frozenset(Plugin.model_validate(each).kind for each in self._rest.plugins())

    def validate_config(self, connector_class: str, config: Mapping[str, str]) -> Validation:
        """Return what the plugin says of `config`, without an error if it would accept it.

        Debezium's validation connects to the database with it.
        """
        plugin = connector_class.rsplit(".", 1)[-1]
        body = {"name": "validation", **config, "connector.class": connector_class}
        page = ValidationPage.model_validate(self._rest.validate(plugin, body))
        return Validation(page.errors(), page.names())

    def status(self, name: str) -> ConnectorStatus | None:
        """Return the state of connector and tasks, None if there is no connector of that name."""
        answer = self._rest.status(name)
        return StatusPage.model_validate(answer).status() if answer is not None else None

    def wait_running(self, name: str, tasks: int = 1, timeout_seconds: float = 120.0) -> ConnectorStatus:
        """Return as soon as the connector and at least `tasks` tasks are there and all are RUNNING.

        Raises:
            ConnectorMissing: there is no connector of that name.
            ConnectorFailed: connector or task is FAILED, and stays so; with the cause from its trace.
            WaitTimedOut: they aren't RUNNING within the time.
        """
        failed_since: float | None = None

        def look() -> ConnectorStatus:
            nonlocal failed_since
            status = self._present(name)
            if status.state != FAILED and not status.failed_tasks:
                failed_since = None
            elif failed_since is None:
                failed_since = monotonic()
            elif monotonic() - failed_since >= SETTLE_SECONDS:
                raise ConnectorFailed(f"Connector {status}. Mend the cause, then restart it.")
            return status

        return until(
            look,
            lambda status: status.is_running(tasks),
            seconds=timeout_seconds,
            what=f"connector {name} to run with {tasks} task(s)",
            hint=self.hint,
        )

    def can_restart(self, status: ConnectorStatus) -> bool:  # noqa: ARG002
        """True: a worker restarts a connector in any state."""
        return True

    def restart_failed(self, name: str) -> tuple[int, ...]:
        """Restart connector and tasks that are FAILED; return the ids of the restarted tasks.

        Raises:
            ConnectorMissing: there is no connector of that name.
        """
        status = self._present(name)
        if status.state != FAILED and not status.failed_tasks:
            return ()
        self._rest.restart_failed(name)
        return tuple(task.id for task in status.failed_tasks)

    def tells_offsets(self, name: str) -> bool:
        """Whether the connector is there: Connect tells no other one's."""
        return self.get(name) is not None

    def offsets(self, name: str) -> tuple[dict[str, object], ...]:
        """Return the source offsets that Connect has stored for the connector, by source partition."""
        return OffsetsPage.model_validate(self._rest.offsets(name)).stored()

    def halt(self, name: str, config: Mapping[str, str]) -> None:
        """Make sure that the connector is there and does not run: its offsets can then be looked at and deleted.

        Raises:
            ConnectorConfigInvalid: there was none, and the plugin refuses the configuration.
        """
        if self.get(name) is None:
            self._rest.create_stopped(name, {"name": name, **config})
        self._stop(name)

    def delete_offsets(self, name: str) -> None:
        """Delete a stopped connector's stored offsets: it begins with a snapshot when it runs again."""
        self._rest.delete_offsets(name)

    def delete(self, name: str, *, offsets: bool = True) -> bool:
        """Delete the connector, with `offsets` after its stored offsets; wait until it is gone.

        Without its offsets a connector made again under the same name begins with a snapshot. What it left in
        the source (the slot) is the caller's to drop.

        Returns:
            whether there was one.
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
            what=f"connector {name} to be gone",
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
            # The configuration is there before the first status is.
            if self.get(name) is not None:
                return ConnectorStatus(name, "UNASSIGNED", ())
            raise ConnectorMissing(f"Kafka Connect at {self.url} has no connector {name}. Deploy it first.")
        return status
