"""A component for unit tests: a Python process that listens on its port."""

# ruff: noqa: ARG002 - fakes have the signatures of the originals

from __future__ import annotations

import socket
import sys
from dataclasses import dataclass, field

from infra.local.stack.component import LOOPBACK, Launch, StackContext

LISTEN = """
import socket, sys, time
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
print("serving", flush=True)
time.sleep(600)
"""


@dataclass
class FakeComponent:
    """A component that listens on its port, or runs another `script`."""

    name: str
    needs: tuple[str, ...] = ()
    script: str = LISTEN
    prepared: list[str] = field(default_factory=list)
    after: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.port_names: tuple[str, ...] = (self.name,)

    def version(self) -> str:
        return "1"

    def prepare(self, context: StackContext) -> None:
        self.prepared.append(self.name)

    def launch(self, context: StackContext) -> Launch:
        return Launch((sys.executable, "-c", self.script, str(context.ports[self.name])))

    def probe(self, context: StackContext) -> None:
        socket.create_connection((LOOPBACK, context.ports[self.name]), timeout=1).close()

    def after_ready(self, context: StackContext) -> None:
        self.prepared.append(f"{self.name} ready")
