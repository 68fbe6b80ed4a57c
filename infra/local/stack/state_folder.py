"""The state folder of one embedded stack, and the lock that lets one command at a time change it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from infra.local.errors import StackError

HOME_VARIABLE = "CDC_LAKE_HOME"
FOLDER = ".cdc-lake"
PROJECT_MARKS = ("pyproject.toml", "workspace.yaml", ".git")


@dataclass(frozen=True)
class StackHome:
    """The state folder of one stack and the paths in it."""

    path: Path

    @property
    def state_file(self) -> Path:
        """The file with ports and processes."""
        return self.path / "stack.json"

    @property
    def secrets_file(self) -> Path:
        """The file with passwords and keys, mode 0600."""
        return self.path / "secrets.json"

    def log(self, component: str) -> Path:
        """Return the file with the output of the component's process. Raises StackError if the name is not valid."""
        if not component.isidentifier():
            raise StackError(f"there is no component {component!r}: `cdc-lake status` lists them")
        return self.path / "logs" / f"{component}.log"

    def make(self) -> None:
        """Create the folder, private to its owner. Root's folder can be traversed by others: PostgreSQL's user must do
        so."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.path.chmod(0o711 if os.geteuid() == 0 else 0o700)
        for folder in ("logs", "dagster", "dashboards"):
            (self.path / folder).mkdir(exist_ok=True)
            (self.path / folder).chmod(0o700)

    @contextmanager
    def locked(self, seconds: float = 600) -> Iterator[None]:
        """Hold the stack's lock; the operating system releases it when the holder dies.

        Raises StackError if another command still holds it after `seconds`.
        """
        lock = FileLock(self.path / "stack.lock", mode=0o600)
        try:
            with lock.acquire(timeout=seconds):
                yield
        except Timeout:
            raise StackError(
                f"another cdc-lake command has been changing the stack in {self.path} for {seconds:.0f} s: "
                "wait for it or end it, then run this again"
            ) from None


def find_home(option: Path | None = None) -> StackHome:
    """Return the state folder: the option, else CDC_LAKE_HOME, else `.cdc-lake` in the project of this directory."""
    chosen = option or os.environ.get(HOME_VARIABLE)
    return StackHome(Path(chosen).expanduser().resolve() if chosen else project_root(Path.cwd()) / FOLDER)


def project_root(start: Path) -> Path:
    """Return the nearest folder at or above `start` that contains a project's files; `start` if there is none."""
    start = start.resolve()
    for folder in (start, *start.parents):
        if any((folder / mark).exists() for mark in PROJECT_MARKS):
            return folder
    return start
