"""Which port each listener of one stack gets, so that several stacks live side by side.

A port fixed by `CDC_LAKE_PORT_<NAME>` is that port or an error. Otherwise the stack keeps the port it
had, else takes the preferred one, else the next free one. A port that another stack on this machine
has chosen counts as taken, also while that stack is down.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import psutil
from filelock import FileLock

from infra.local.errors import PortTaken, StackError
from infra.local.files import write_atomic
from infra.local.stack.component import LOOPBACK

PREFERRED: Mapping[str, int] = {
    "postgres": 15432,
    "kafka": 19092,
    "kafka_controller": 19093,
    "connect": 18083,
    "s3": 19000,
    "aws": 14566,
    "trino": 18080,
}
SEARCHED = 400


def variable(name: str) -> str:
    """The environment variable that fixes the port of this name."""
    return f"CDC_LAKE_PORT_{name.upper()}"


def is_free(port: int) -> bool:
    """Whether nothing listens on the port. A listener that has just ended does not count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def holder(port: int) -> str:
    """Who listens on the port, for an error message, as far as this user may know."""
    with suppress(psutil.AccessDenied):
        for connection in psutil.net_connections(kind="tcp"):
            here = connection.status == psutil.CONN_LISTEN and tuple(connection.laddr)[1:] == (port,)
            if here and connection.pid:
                with suppress(psutil.NoSuchProcess):
                    return f"{psutil.Process(connection.pid).name()}, pid {connection.pid}"
    return "another process"


class PortBook:
    """The ports that the stacks of this user have chosen, in one file of the cache folder.

    `environment` is where fixed ports are looked for; the process's if None.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str] | None = None) -> None:
        self._environment = os.environ if environment is None else environment
        folder.mkdir(parents=True, exist_ok=True)
        self._file = folder / "ports.json"
        self._lock = FileLock(folder / "ports.lock")

    def choose(
        self,
        home: Path,
        wanted: Sequence[str],
        saved: Mapping[str, int],
        ours: Collection[str],
        say: Callable[[str], None],
        keep: Callable[[dict[str, int]], None],
    ) -> dict[str, int]:
        """A port for each name of `wanted`, noted as this home's.

        `ours` are the names whose saved port is held by this stack's own running process. `keep` writes the choice
        into the home's state before another stack chooses: without that, the note would count as a removed home's.
        Raises PortTaken when a port fixed by the environment is held by someone else.
        """
        with self._lock:
            book = self._read()
            others = {port for other, ports in book.items() if other != str(home) for port in ports}
            chosen: dict[str, int] = {}
            for name in wanted:
                used = others | set(chosen.values())
                fixed = _fixed(name, self._environment)
                chosen[name] = _choose_one(name, fixed, saved.get(name), used, name in ours, say)
            book[str(home)] = sorted(chosen.values())
            write_atomic(self._file, json.dumps(book, indent=2))
            keep(chosen)
            return chosen

    def _read(self) -> dict[str, list[int]]:
        """The notes of every stack whose state still exists."""
        with suppress(FileNotFoundError, json.JSONDecodeError):
            book: dict[str, list[int]] = json.loads(self._file.read_text(encoding="utf-8"))
            return {home: ports for home, ports in book.items() if (Path(home) / "stack.json").exists()}
        return {}


def _choose_one(
    name: str, fixed: int | None, saved: int | None, used: Collection[int], ours: bool, say: Callable[[str], None]
) -> int:
    if fixed is not None:
        if not (ours and saved == fixed) and not is_free(fixed):
            raise PortTaken(
                f"port {fixed} for {name} ({variable(name)}) is held by {holder(fixed)}: "
                f"end that process, or set {variable(name)} to a free port"
            )
        return fixed
    if saved is not None and (ours or (saved not in used and is_free(saved))):
        return saved
    first = PREFERRED.get(name, 20000)
    reserved = {port for other, port in PREFERRED.items() if other != name}
    for port in range(first, first + SEARCHED):
        if port not in used and port not in reserved and is_free(port):
            before = saved or first
            if port != before:
                by = "belongs to another stack of yours" if before in used else "is taken"
                say(f"port {before} for {name} {by}: using {port} (set {variable(name)} to fix one)")
            return port
    raise PortTaken(f"no free port for {name} between {first} and {first + SEARCHED - 1}: set {variable(name)} to one")


def _fixed(name: str, environment: Mapping[str, str]) -> int | None:
    text = environment.get(variable(name))
    if not text:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise StackError(f"{variable(name)}={text} is not a port: give a number between 1 and 65535")
    return int(text)
