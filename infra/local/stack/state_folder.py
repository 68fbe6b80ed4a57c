"""The state folder of one local stack, and the lock that allows only one command at a time to change it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from filelock import FileLock, Timeout

from infra.errors import StackError
from infra.folders import state_folder


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
            raise StackError(
                f"Cannot find the log of {component!r}: it is not a component. Run `cdc-lake status`, which lists the "
                "components."
            )
        return self.path / "logs" / f"{component}.log"

    def make(self) -> None:
        """Create the folder, private to its owner.

        Other users may traverse the folder if its owner is root, because PostgreSQL's user must do so.
        """
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
                f"Cannot lock the stack in {self.path}: another cdc-lake command has been changing it for "
                f"{seconds:.0f} s. Wait until it ends, or end it, then run this again."
            ) from None


def find_home(option: Path | None = None) -> StackHome:
    """Return the StackHome in the folder that infra.folders.state_folder(option) returns."""
    return StackHome(state_folder(option))
