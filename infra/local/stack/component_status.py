"""The status of one component, from its process and its port; no request is sent to it."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal

import psutil

from infra.errors import StackError
from infra.local.stack.component import LOOPBACK, Component
from infra.local.stack.process import GONE, recorded
from infra.local.stack.stack_state import StackState

ComponentState = Literal["running", "starting", "stopped", "dead"]


@dataclass(frozen=True)
class ComponentStatus:
    """One line of `cdc-lake status`. dead: it was started and its process ended without a `down`."""

    name: str
    state: ComponentState
    pid: int | None
    port: int | None
    version: str | None
    rss_bytes: int | None


def component_status(component: Component, state: StackState) -> ComponentStatus:
    """Return the component's status, based on the recorded state of its stack."""
    port = state.ports.get(component.port_names[0])
    note = state.processes.get(component.name)
    process = recorded(note)
    version: str | None = None
    with suppress(StackError):  # without its artifacts the version is unknown
        version = component.version()
    if process is None:
        return ComponentStatus(component.name, "dead" if note else "stopped", None, port, version, None)
    answers = port is not None and listens(port)
    return ComponentStatus(
        component.name, "running" if answers else "starting", process.pid, port, version, resident(process)
    )


def listens(port: int) -> bool:
    """Return whether a process accepts connections on the port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.settimeout(1)
        return client.connect_ex((LOOPBACK, port)) == 0


def resident(process: psutil.Process) -> int | None:
    """Return the resident memory of the process and its children in bytes; memory that children share counts once."""
    try:
        total: int = process.memory_info().rss
        for child in process.children(recursive=True):
            with suppress(*GONE):
                info = child.memory_info()
                total += max(info.rss - info.shared, 0)
        return total
    except (*GONE, psutil.AccessDenied):
        return None
