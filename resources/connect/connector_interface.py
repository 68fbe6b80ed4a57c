"""What runs connectors: the interface that self-managed Kafka Connect and MSK Connect share."""

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
    # A message of several lines is one; frames are not the cause's.
    message = " ".join(line for line in lines if not line.startswith("at "))
    cause = causes[-1] if causes else message or "no trace"
    # Debezium quotes its whole state in one line.
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
        """The trace's last cause in one line: what to show where there is room for a line."""
        return _last_cause(self.trace)


@dataclass(frozen=True)
class ConnectorStatus:
    """One connector and its tasks."""

    name: str
    state: str
    tasks: tuple[TaskStatus, ...]
    trace: str | None = None
    tasks_told: bool = True
    """Whether `tasks` are known: MSK Connect tells them by metrics only, some minutes late."""

    @property
    def failed_tasks(self) -> tuple[TaskStatus, ...]:
        """The tasks that are FAILED."""
        return tuple(task for task in self.tasks if task.state == FAILED)

    def is_running(self, tasks: int = 1) -> bool:
        """Whether the connector and at least so many tasks are there, and all of them are RUNNING."""
        if not self.tasks_told:
            return self.state == RUNNING
        states = {self.state, *(task.state for task in self.tasks)}
        return states == {RUNNING} and len(self.tasks) >= tasks

    def __str__(self) -> str:
        """Return the state in one line, with the causes of failures."""
        cause = f": {_last_cause(self.trace)}" if self.state == FAILED else ""
        if not self.tasks_told:
            return f"{self.name} is {self.state}{cause}"
        tasks = [f"task {t.id} {t.state}" + (f": {t.cause}" if t.state == FAILED else "") for t in self.tasks]
        return f"{self.name} is {self.state}{cause}, {'; '.join(tasks) or 'no tasks'}"


class Connectors(Protocol):
    """Something that runs connectors."""

    def put(self, name: str, config: Mapping[str, str]) -> PutOutcome:
        """Make the connector run with `config`; without a difference to what runs nothing is called."""

    def get(self, name: str) -> dict[str, str] | None:
        """Return the connector's configuration, None if there is no connector of that name."""

    def delete(self, name: str, *, offsets: bool = True) -> bool:
        """Delete the connector, and its source offsets; return whether there was one."""

    def halt(self, name: str, config: Mapping[str, str]) -> None:
        """Make sure that the connector does not run, and that its offsets can be asked for and deleted.

        Where that takes a connector that is there, it is made with `config`; put() lets it run.
        """

    def tells_offsets(self, name: str) -> bool:
        """Whether offsets() knows what is stored for the connector: some can say so only while it is there."""

    def offsets(self, name: str) -> tuple[dict[str, object], ...]:
        """Return the source offsets that are stored for the connector, by source partition."""

    def delete_offsets(self, name: str) -> None:
        """Delete a halted connector's stored offsets: it begins with a snapshot when it runs again."""

    def status(self, name: str) -> ConnectorStatus | None:
        """Return the state of the connector, None if there is no connector of that name."""

    def can_restart(self, status: ConnectorStatus) -> bool:
        """Whether restart_failed() takes a connector in this state; where not, put() makes it anew."""

    def restart_failed(self, name: str) -> tuple[int, ...]:
        """Restart what is FAILED; return the ids of the restarted tasks."""

    def wait_running(self, name: str, tasks: int = 1, timeout_seconds: float = 120.0) -> ConnectorStatus:
        """Return as soon as connector and tasks are RUNNING.

        Raises:
            ConnectorFailed: one of them is FAILED, and stays so.
            WaitTimedOut: they aren't within the time.
        """
