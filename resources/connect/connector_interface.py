"""The interface that self-managed Kafka Connect and MSK Connect implement: put, delete, status, offsets."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, Protocol

PutOutcome = Literal["created", "updated", "unchanged"]

RUNNING = "RUNNING"
FAILED = "FAILED"
CAUSE_LENGTH = 400


def _last_cause(trace: str | None) -> str:
    lines = [line.strip() for line in (trace or "").splitlines() if line.strip()]
    causes = [line.removeprefix("Caused by: ") for line in lines if line.startswith("Caused by: ")]
    # A cause's message can have several lines; lines that begin with `at` are stack frames.
    message = " ".join(line for line in lines if not line.startswith("at "))
    cause = causes[-1] if causes else message or "Connect gives no reason"
    # Debezium's messages can contain its whole state, so long ones are shortened.
    return (
        cause if len(cause) <= CAUSE_LENGTH else f"{cause[: CAUSE_LENGTH // 2]} … {cause[-CAUSE_LENGTH // 2 :]}"
    ).rstrip(".")


@dataclass(frozen=True)
class TaskStatus:
    """One task of a connector."""

    id: int
    state: str
    """UNASSIGNED, RUNNING, PAUSED, FAILED or RESTARTING."""
    worker: str
    trace: str | None
    """The stack trace of a FAILED task."""

    @property
    def cause(self) -> str:
        """The last cause in the trace, in one line."""
        return _last_cause(self.trace)


@dataclass(frozen=True)
class ConnectorStatus:
    """One connector and its tasks."""

    name: str
    state: str
    tasks: tuple[TaskStatus, ...]
    trace: str | None = None
    tasks_known: bool = True
    """Whether `tasks` is known: MSK Connect reports tasks only as metrics, some minutes late."""

    @property
    def failed_tasks(self) -> tuple[TaskStatus, ...]:
        """The FAILED tasks."""
        return tuple(task for task in self.tasks if task.state == FAILED)

    def is_running(self) -> bool:
        """Return whether the connector and its tasks are RUNNING; without any task it is not."""
        if not self.tasks_known:
            return self.state == RUNNING
        return bool(self.tasks) and {self.state, *(task.state for task in self.tasks)} == {RUNNING}

    def __str__(self) -> str:
        """Return the state in one line, with the causes of failures."""
        cause = f": {_last_cause(self.trace)}" if self.state == FAILED else ""
        if not self.tasks_known:
            return f"{self.name} is {self.state}{cause}"
        tasks = [f"task {t.id} {t.state}" + (f": {t.cause}" if t.state == FAILED else "") for t in self.tasks]
        return f"{self.name} is {self.state}{cause}, {'; '.join(tasks) or 'no tasks'}"


class Connectors(Protocol):
    """Runs connectors."""

    def put(self, name: str, config: Mapping[str, str]) -> PutOutcome:
        """Create, update or resume the connector so that it runs with `config`; changes nothing if it already does."""

    def get(self, name: str) -> dict[str, str] | None:
        """Return the connector's configuration, None if there is no connector of that name."""

    def delete(self, name: str, *, offsets: bool = True) -> bool:
        """Delete the connector and, with `offsets`, its source offsets; return whether anything was deleted."""

    def ensure_stopped(self, name: str, config: Mapping[str, str]) -> None:
        """Stop the connector, so that its offsets can be read and deleted. put() starts it again.

        Self-managed Connect first creates a missing connector with `config`. MSK Connect deletes the connector.
        """

    def reports_offsets(self, name: str) -> bool:
        """Return whether offsets() can report the connector's offsets; self-managed Connect requires that it exists."""

    def offsets(self, name: str) -> tuple[dict[str, object], ...]:
        """Return the connector's stored source offsets, one for each source partition."""

    def delete_offsets(self, name: str) -> None:
        """Delete the stored offsets of a stopped connector, which then starts with a snapshot."""

    def status(self, name: str) -> ConnectorStatus | None:
        """Return the state of the connector, None if there is no connector of that name."""

    def can_restart(self, status: ConnectorStatus) -> bool:
        """Return whether restart_failed() works in this state; if it does not, put() re-creates the connector."""

    def restart_failed(self, name: str) -> tuple[int, ...]:
        """Restart the connector if it is FAILED, and its FAILED tasks; return the ids of those tasks."""

    def wait_running(self, name: str, timeout_seconds: float = 120.0) -> ConnectorStatus:
        """Wait until the connector and its tasks are RUNNING.

        Raises:
            ConnectorFailed: the connector or a task stays FAILED.
            WaitTimedOut: they are not RUNNING in time.
        """
