"""A fake of Kafka Connect in memory: connectors that run, fail, and are restarted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from pydantic import PrivateAttr

from cdc_lake_tests.fakes.steps import Noting, Steps
from resources.connect.connector_interface import FAILED, RUNNING, ConnectorStatus, PutOutcome, TaskStatus
from resources.connect.kafka_connect import KafkaConnect


class FakeConnect(Noting, KafkaConnect):
    """Connectors in memory; each runs one task until `fail` is called."""

    url: str = "http://nowhere:8083"
    _configs: dict[str, dict[str, str]] = PrivateAttr(default_factory=dict)
    _states: dict[str, ConnectorStatus] = PrivateAttr(default_factory=dict)
    _offsets: dict[str, Mapping[str, object] | None] = PrivateAttr(default_factory=dict)
    _listeners: list[Callable[[str], object]] = PrivateAttr(default_factory=list)
    _running_only: bool = PrivateAttr(default=False)
    _restarts: list[str] = PrivateAttr(default_factory=list)
    _steps: Steps = PrivateAttr(default_factory=Steps)

    @property
    def listeners(self) -> list[Callable[[str], object]]:
        """Return the functions to call with the name of each connector that is put and runs."""
        return self._listeners

    @property
    def restarts(self) -> list[str]:
        """Return the name of a connector for each of its restarts."""
        return self._restarts

    def run(self, name: str, state: str = RUNNING) -> None:
        """Set the connector and its task to RUNNING, or both to another state."""
        self._states[name] = ConnectorStatus(name, state, (TaskStatus(0, state, "worker", None),))
        self._offsets.setdefault(name, {"lsn": 995})  # below what the fake slot has confirmed

    def run_uncounted(self, name: str) -> None:
        """Set the connector to RUNNING with unknown tasks, as MSK Connect first reports it."""
        self._states[name] = ConnectorStatus(name, RUNNING, (), tasks_known=False)

    def fail(self, name: str, cause: str, *, connector_too: bool = False) -> None:
        """Fail the connector's task, or the connector itself while it has no task."""
        task = TaskStatus(0, FAILED, "worker", f"org.apache.SomeException\nCaused by: {cause}")
        self._states[name] = (
            ConnectorStatus(name, FAILED, (), f"Caused by: {cause}")
            if connector_too
            else ConnectorStatus(name, RUNNING, (task,))
        )

    def store(self, name: str, offset: Mapping[str, object] | None) -> None:
        """Store an offset of the connector, or remove it."""
        self._offsets[name] = offset

    def offsets(self, name: str) -> tuple[dict[str, object], ...]:
        """See KafkaConnect."""
        found = self._offsets.get(name)
        return () if found is None else (dict(found),)

    def ensure_stopped(self, name: str, config: Mapping[str, str]) -> None:
        """See KafkaConnect."""
        self._steps.take(f"stop {name}")
        self._configs.setdefault(name, dict(config))
        self._states[name] = ConnectorStatus(name, "STOPPED", ())

    def delete_offsets(self, name: str) -> None:
        """See KafkaConnect."""
        self._steps.take(f"offsets {name}")
        self._offsets.pop(name, None)

    def get(self, name: str) -> dict[str, str] | None:
        """See KafkaConnect."""
        return self._configs.get(name)

    def put(self, name: str, config: Mapping[str, str]) -> PutOutcome:
        """See KafkaConnect."""
        before = self._configs.get(name)
        self._configs[name] = dict(config)
        if before == config and self._states[name].state != "STOPPED":
            return "unchanged"
        self.run(name)
        for listener in self._listeners:
            listener(name)
        return "created" if before is None else "updated"

    def status(self, name: str) -> ConnectorStatus | None:
        """See KafkaConnect."""
        return self._states.get(name)

    def wait_running(self, name: str, timeout_seconds: float = 120.0) -> ConnectorStatus:  # noqa: ARG002
        """See KafkaConnect."""
        return self._states[name]

    def restart_running_only(self) -> None:
        """Allow restarts of running connectors only, as MSK Connect does."""
        self._running_only = True

    def can_restart(self, status: ConnectorStatus) -> bool:
        """See KafkaConnect."""
        return status.state == RUNNING or not self._running_only

    def restart_failed(self, name: str) -> tuple[int, ...]:
        """See KafkaConnect; the connector still fails until `run` is called."""
        self._restarts.append(name)
        return tuple(task.id for task in self._states[name].failed_tasks)

    def delete(self, name: str, *, offsets: bool = True) -> bool:
        """See KafkaConnect."""
        if name not in self._states:
            return False
        self._steps.take(f"connector {name}{' with offsets' if offsets else ''}")
        del self._states[name]
        self._configs.pop(name, None)
        if offsets:
            self._offsets.pop(name, None)
        return True
