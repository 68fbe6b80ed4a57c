"""stack.json: the ports that one stack has chosen, and the processes that it started.

The file can be out of date: a process belongs to the stack only if its pid has the recorded start time, and processes
without a record are found by their environment (process.py).
"""

from __future__ import annotations

from pathlib import Path
from threading import Lock

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from infra.files import write_atomic


class ProcessRecord(BaseModel):
    """One started process; `created` is its start time in seconds since the epoch, as the kernel reports it."""

    model_config = ConfigDict(frozen=True)

    pid: int
    created: float


class StackState(BaseModel):
    """The content of stack.json."""

    ports: dict[str, int] = Field(default_factory=dict)
    processes: dict[str, ProcessRecord] = Field(default_factory=dict)


class StateFile:
    """Reads and writes one stack.json; safe to use from several threads of one process."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = Lock()

    def read(self) -> StackState:
        """Return the recorded state; an empty one if the file is missing or damaged.

        A damaged file causes no loss: processes are found without it, and ports are chosen again.
        """
        try:
            return StackState.model_validate_json(self._path.read_text(encoding="utf-8"))
        except (FileNotFoundError, UnicodeDecodeError, ValidationError):
            return StackState()

    def save_ports(self, ports: dict[str, int]) -> None:
        """Record the chosen ports; ports of other names stay."""
        with self._lock:
            state = self.read()
            self._write(state.model_copy(update={"ports": state.ports | ports}))

    def save_process(self, component: str, record: ProcessRecord) -> None:
        """Record the process of one component."""
        with self._lock:
            state = self.read()
            self._write(state.model_copy(update={"processes": state.processes | {component: record}}))

    def forget_process(self, component: str) -> None:
        """Delete the record of one component's process."""
        with self._lock:
            state = self.read()
            if component in state.processes:
                left = {name: record for name, record in state.processes.items() if name != component}
                self._write(state.model_copy(update={"processes": left}))

    def _write(self, state: StackState) -> None:
        write_atomic(self._path, state.model_dump_json(indent=2))
