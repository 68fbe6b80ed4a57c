"""Chooses the ports of one stack, so that several stacks can run on one machine.

If `CDC_LAKE_PORT_<NAME>` sets a port, the stack uses that port or fails. Otherwise it uses its previous port, else the
preferred one, else the next free one. A port that another stack of this user has chosen counts as taken, also while
that stack is down.
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

from infra.errors import PortTaken, StackError
from infra.files import write_atomic
from infra.local.stack.component import LOOPBACK

PREFERRED: Mapping[str, int] = {
    "postgres": 15432,
    "kafka": 19092,
    "kafka_controller": 19093,
    "connect": 18083,
    "s3": 19000,
    "aws": 14566,
    "trino": 18080,
    "registry": 18081,
}
SEARCHED = 400


def variable(name: str) -> str:
    """Return the name of the environment variable that fixes this port."""
    return f"CDC_LAKE_PORT_{name.upper()}"


def is_free(port: int) -> bool:
    """Return whether no process listens on the port. A listener that has just ended does not count."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((LOOPBACK, port))
        except OSError:
            return False
        return True


def listener(port: int) -> str:
    """Return the name and pid of the process that listens on the port, for an error message.

    Returns "another process" if this user may not see them.
    """
    with suppress(psutil.AccessDenied):
        for connection in psutil.net_connections(kind="tcp"):
            here = connection.status == psutil.CONN_LISTEN and tuple(connection.laddr)[1:] == (port,)
            if here and connection.pid:
                with suppress(psutil.NoSuchProcess):
                    return f"{psutil.Process(connection.pid).name()}, pid {connection.pid}"
    return "another process"


class PortBook:
    """The ports that the stacks of this user have chosen, in one file of the cache folder.

    Fixed ports are read from `environment`; from the process's environment if None.
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
        """Choose a port for each name of `wanted`, and record it for this home.

        `ours` are the names whose saved port is in use by this stack's own running process. `keep` writes the choice to
        the home's state file; it is called before another stack can choose, because the book drops homes without that
        file. Raises PortTaken if another process has a port that the environment sets, or no port is free.
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
        """Return the recorded ports of every stack whose state file still exists, by the path of its home."""
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
                f"Cannot start {name}: port {fixed} ({variable(name)}) is used by {listener(fixed)}. "
                f"End that process, or set {variable(name)} to a free port."
            )
        return fixed
    if saved is not None and (ours or (saved not in used and is_free(saved))):
        return saved
    first = PREFERRED.get(name, 20000)
    reserved = {port for other, port in PREFERRED.items() if other != name}
    for port in range(first, first + SEARCHED):
        if port not in used and port not in reserved and is_free(port):
            expected = saved or first
            if port != expected:
                by = "is reserved by another of your stacks" if expected in used else "is in use"
                say(f"{name} uses port {port}: port {expected} {by} (set {variable(name)} to choose a port)")
            return port
    raise PortTaken(
        f"Cannot start {name}: no port between {first} and {first + SEARCHED - 1} is free. Set {variable(name)} to a "
        "free port."
    )


def _fixed(name: str, environment: Mapping[str, str]) -> int | None:
    text = environment.get(variable(name))
    if not text:
        return None
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise StackError(f"Cannot use {variable(name)}={text}: it is not a port. Set it to a number from 1 to 65535.")
    return int(text)
