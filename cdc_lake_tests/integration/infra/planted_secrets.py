"""A whole stack with known secrets, used by the command line, and the search for these secrets."""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

import httpx
import psutil
import pytest

from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.northwind import loader
from cdc_lake_tests.helpers.command_line import CommandLine
from cdc_lake_tests.helpers.local_stack import scratch_home
from infra.files import write_atomic
from infra.local.stack.attach import load_endpoints
from infra.local.stack.endpoints import Endpoints
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome

SELECTION = "group:northwind"
OTHER_USER = 65534
"""The user id of an attacker."""
_EVERY_SECONDS = 0.05


@dataclass(frozen=True)
class Planted:
    """Secrets that are unique on this machine."""

    postgres_password: str = field(default_factory=lambda: f"planted-postgres-{secrets.token_hex(12)}")
    debezium_password: str = field(default_factory=lambda: f"planted-debezium-{secrets.token_hex(12)}")
    connect_password: str = field(default_factory=lambda: f"planted-connect-{secrets.token_hex(12)}")
    s3_secret_key: str = field(default_factory=lambda: f"planted-s3-{secrets.token_hex(12)}")

    def within(self, text: str | bytes) -> bool:
        """Return whether a text contains one of them."""
        body = text.encode() if isinstance(text, str) else text
        return any(each.encode() in body for each in asdict(self).values())


@dataclass
class Watch:
    """The command lines of all processes on this machine during the watch; `leaking` are those with a secret."""

    planted: Planted
    seen: set[str] = field(default_factory=set)
    leaking: set[str] = field(default_factory=set)
    _stop: threading.Event = field(default_factory=threading.Event)

    @contextmanager
    def on(self) -> Iterator[None]:
        """Watch during the block."""
        thread = threading.Thread(target=self._run, daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            thread.join()

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_SECONDS):
            for process in psutil.process_iter(["cmdline"]):
                line = " ".join(process.info["cmdline"] or ())
                self.seen.add(line)
                if self.planted.within(line):
                    self.leaking.add(line)


@dataclass
class Secured:
    """The stack after a whole materialisation; `printed` is the output of all commands."""

    stack: Stack
    planted: Planted
    watch: Watch
    environment: dict[str, str]
    printed: list[str] = field(default_factory=list)

    @property
    def at(self) -> Endpoints:
        """Return the endpoints of its systems."""
        return load_endpoints(self.stack.home.path)

    def run(self, *command: str) -> str:
        """Run a program of the virtual environment, and return its standard output."""
        done = CommandLine(self.stack, self.environment).run(*command, ok=False)
        self.printed += [done.stdout, done.stderr]
        assert done.returncode == 0, f"{command} ended with {done.returncode}:\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def run_as_other_user(self, code: str, *arguments: str) -> str:
        """Run a Python program as another user of this machine, which only root can, and return its output."""
        if os.geteuid() != 0:
            pytest.skip("only root can act as another user")
        done = subprocess.run(
            ["/usr/bin/python3", "-I", "-c", code, *arguments],
            cwd="/",
            user=OTHER_USER,
            group=OTHER_USER,
            extra_groups=[],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        return done.stdout

    def connect(self, method: str, path: str, body: object = None) -> httpx.Response:
        """Send a request to the Connect worker with the stack's login."""
        url = self.at.connect_url + path
        return httpx.request(method, url, json=body, auth=self.at.connect_login, timeout=60, trust_env=False)

    def processes(self) -> dict[str, list[psutil.Process]]:
        """Return the processes of each component, with their children."""
        found: dict[str, list[psutil.Process]] = {}
        for each in self.stack.status():
            assert each.pid is not None, each
            process = psutil.Process(each.pid)
            found[each.name] = [process, *process.children(recursive=True)]
        return found

    def files_with_a_secret(self) -> set[str]:
        """Return the files of the state folder that contain a planted secret, relative to it."""
        home = self.stack.home.path
        return {
            str(path.relative_to(home))
            for path in home.rglob("*")
            if path.is_file() and not path.is_symlink() and self.planted.within(path.read_bytes())
        }


@contextmanager
def secured_stack() -> Iterator[Secured]:
    """Run the stack with the Northwind pipeline, materialised once."""
    planted = Planted()
    own = ("CDC_LAKE_", "DAGSTER_HOME", "AWS_")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    with scratch_home() as home:
        home.mkdir(mode=0o711)
        stored = {**asdict(planted), "s3_access_key": "cdcplanted"}
        write_atomic(home / "secrets.json", json.dumps(stored))
        environment = {**inherited, "CDC_LAKE_HOME": str(home), "DAGSTER_HOME": str(home / "dagster")}
        found = Secured(Stack(StackHome(home)), planted, Watch(planted), environment)
        try:
            with found.watch.on():
                found.run("cdc-lake", "up")
                at = found.at
                password = at.postgres_password.get_secret_value()
                login = ConnectionParameters(at.postgres_host, at.postgres_port, "devdb", at.postgres_user, password)
                loader.load(login)
                found.run("dagster", "asset", "materialize", "-m", "cdc_lake.definitions", "--select", SELECTION)
            yield found
        finally:
            found.run("cdc-lake", "down")
