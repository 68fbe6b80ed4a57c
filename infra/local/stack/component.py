"""The interface of the stack's components: how each is prepared, started and probed."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

PRIVATE_FOLDER = 0o700
TEMPORARY = "tmp"
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Secrets:
    """The random secrets of one state folder, created once and kept in a file of mode 0600."""

    postgres_password: str
    """The password of the superuser."""
    debezium_password: str
    """The password of the role that connectors log in as."""
    connect_password: str
    """The password of Connect's REST interface."""
    s3_access_key: str
    s3_secret_key: str


@dataclass(frozen=True)
class StackContext:
    """The state folder, the ports and the secrets of the stack, for its components."""

    home: Path
    ports: Mapping[str, int]
    secrets: Secrets

    def folder(self, component: str) -> Path:
        """Return the component's folder below the state folder, private to its owner; create it if it is missing."""
        path = self.home / component
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(PRIVATE_FOLDER)
        return path

    def temporary(self, component: str) -> Path:
        """Return the empty folder for the component's temporary files; delete the files of an earlier process."""
        path = self.folder(component) / TEMPORARY
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(mode=PRIVATE_FOLDER)
        return path


@dataclass(frozen=True)
class Launch:
    """One process: its arguments, additions to its environment, and its user."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    """The operating system user to run as; None: the caller's."""


class Component(Protocol):
    """One process of the local stack."""

    name: str
    port_names: tuple[str, ...]
    """The names of the ports it listens on; `status` shows the first one."""
    needs: tuple[str, ...]
    """Components that must be ready before this one starts."""

    def version(self) -> str:
        """Return the version of the engine, read from its artifacts."""

    def prepare(self, context: StackContext) -> None:
        """Write the configuration and create what must exist before the start; idempotent."""

    def launch(self, context: StackContext) -> Launch:
        """Return the process to start."""

    def probe(self, context: StackContext) -> None:
        """Check that the component serves requests. Raises any exception if it does not."""

    def after_ready(self, context: StackContext) -> None:
        """Create what the stack provides inside the running component (a bucket, a database); idempotent."""


@runtime_checkable
class StartsAfter(Protocol):
    """A component that starts after the components in `after`, if they are started, and stops before them."""

    after: tuple[str, ...]


@runtime_checkable
class UsesAddresses(Protocol):
    """A component whose configuration has the addresses of the components in `uses`, which can start after it."""

    uses: tuple[str, ...]


@runtime_checkable
class StopsBySignal(Protocol):
    """A component that needs another signal than SIGTERM for a clean shutdown."""

    stop_signal: signal.Signals
