"""What every part of the embedded stack has in common: how it is prepared, started and probed."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from infra.local.artifacts.class_path import ClassPath

PRIVATE_FOLDER = 0o700
TEMPORARY = "tmp"
LOOPBACK = "127.0.0.1"


@dataclass(frozen=True)
class Secrets:
    """The random secrets of one state folder; made once, kept in a file of mode 0600."""

    postgres_password: str
    """The superuser's."""
    debezium_password: str
    """That of the role which connectors sign in as."""
    connect_password: str
    """That of Connect's REST interface."""
    s3_access_key: str
    s3_secret_key: str


@dataclass(frozen=True)
class StackContext:
    """What a component may know of the stack it belongs to."""

    home: Path
    ports: Mapping[str, int]
    secrets: Secrets

    def folder(self, component: str) -> Path:
        """The component's own folder below the state folder, made if it is missing; for nobody else to read."""
        path = self.home / component
        path.mkdir(parents=True, exist_ok=True)
        path.chmod(PRIVATE_FOLDER)
        return path

    def temporary(self, component: str) -> Path:
        """The folder for the component's temporary files, empty: what a process that was killed left is removed."""
        path = self.folder(component) / TEMPORARY
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(mode=PRIVATE_FOLDER)
        return path


@dataclass(frozen=True)
class Launch:
    """One process: its arguments, what it adds to the environment, and whose it is."""

    argv: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    user: str | None = None
    """The operating system user to run as; None: the caller's."""


class Component(Protocol):
    """One process of the embedded stack."""

    name: str
    port_names: tuple[str, ...]
    """The ports it listens on, by name; the first one is the one `status` shows."""
    needs: tuple[str, ...]
    """Components that must be ready before this one starts."""

    def version(self) -> str:
        """The version of the engine, as its own artifacts tell it."""

    def prepare(self, context: StackContext) -> None:
        """Write configuration and make what must exist before the start; idempotent."""

    def launch(self, context: StackContext) -> Launch:
        """The process to start."""

    def probe(self, context: StackContext) -> None:
        """Return when the component serves requests; raise any exception while it does not yet."""

    def after_ready(self, context: StackContext) -> None:
        """Make what the stack promises inside the running component (a bucket, a database); idempotent."""


@runtime_checkable
class StopsBySignal(Protocol):
    """A component that wants another signal than SIGTERM to end in good order; nothing else is asked of it."""

    stop_signal: signal.Signals


@runtime_checkable
class OnJava(Component, Protocol):
    """A component that is run by a JVM, whose classes are kept."""

    def class_path(self) -> ClassPath:
        """What it is run from."""

    def exercise(self, context: StackContext) -> None:
        """Ask the running engine for what it is asked most, so that the classes for it are loaded."""
