"""Fixtures of the end-to-end tests: a whole stack in its own state folder, driven by the command line."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from cdc_lake_tests.e2e.dagster_ui import Ui, running_ui
from cdc_lake_tests.helpers.local_stack import scratch_home
from cdc_lake_tests.helpers.markdown_blocks import blocks
from cdc_lake_tests.pytest_hooks.collection_order import group
from infra.local.stack.attach import load_endpoints
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _together(request: pytest.FixtureRequest, worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Require that the tests of a group run in one process: each continues from the previous one's state."""
    name = group(request.node.nodeid)
    claim = tmp_path_factory.getbasetemp().parent / f"{name} of {os.getppid()}"
    with suppress(FileExistsError), claim.open("x") as first:
        first.write(worker_id)
    assert claim.read_text() == worker_id, f"the tests of {name} are spread over processes"


@dataclass(frozen=True)
class CommandLine:
    """`cdc-lake` and other programs on one stack."""

    stack: Stack
    environment: dict[str, str]

    def run(self, *command: str, timeout: float = 600, ok: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program of the virtual environment; with `ok`, fail on an exit code other than 0."""
        done = subprocess.run(
            [str(BIN / command[0]), *command[1:]],
            env=self.environment,
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if ok:
            output = f"{done.stdout}\n{done.stderr}"
            assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{output}"
        return done

    def run_page(self, page: str) -> tuple[list[str], str]:
        """Run the `sh` blocks of a page below docs/ in one shell, unchanged; return the blocks and the output."""
        commands = [block.text for block in blocks((ROOT / "docs" / page).read_text()) if block.language == "sh"]
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", "\n".join(commands)],
            cwd=ROOT,
            env={**self.environment, "PATH": f"{BIN}:{self.environment['PATH']}"},
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return commands, done.stdout

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Start a program of the virtual environment, without waiting for it; its output is discarded."""
        return subprocess.Popen(
            [str(BIN / command[0]), *command[1:]],
            env=self.environment,
            cwd=ROOT,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )

    def query(self, sql: str) -> list[dict[str, Any]]:
        """Run an Athena query by `cdc-lake query`, and return its rows."""
        rows: list[dict[str, Any]] = json.loads(self.run("cdc-lake", "query", sql, "--format", "json").stdout)
        return rows

    def query_source(self, sql: str) -> list[tuple[Any, ...]]:
        """Run and commit a statement at the source, and return its rows."""
        endpoints = load_endpoints(self.stack.home.path)
        login: dict[str, Any] = {
            "host": endpoints.postgres_host,
            "port": endpoints.postgres_port,
            "user": endpoints.postgres_user,
            "dbname": "devdb",
        }
        password = endpoints.postgres_password.get_secret_value()
        with (
            closing(psycopg2.connect(**login, password=password)) as connection,
            connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(sql)
            return cursor.fetchall()


# Not session scope: the stack would keep running during the tests of other packages.
@pytest.fixture(scope="package")
def cli() -> Iterator[CommandLine]:
    """Return the command line on a running stack."""
    own = ("CDC_LAKE_HOME", "CDC_LAKE_PORT_", "DAGSTER_HOME")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    with scratch_home() as home:
        # `cdc-lake up` starts the stack, not this process: a killed child of this process would stay a zombie, which
        # PostgreSQL takes for a running server.
        found = CommandLine(Stack(StackHome(home)), {**inherited, "CDC_LAKE_HOME": str(home)})
        try:
            found.run("cdc-lake", "up")
            yield found
        finally:
            found.run("cdc-lake", "down")


@pytest.fixture(scope="package")
def demo(cli: CommandLine) -> dict[str, Any]:
    """Run the demo on the new stack, and return its summary."""
    done = cli.run("cdc-lake", "demo", "--json", ok=False)
    assert done.stdout, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return {**summary, "exit_code": done.returncode, "stderr": done.stderr}


@pytest.fixture(scope="module")
def ui(cli: CommandLine, demo: dict[str, Any]) -> Iterator[Ui]:
    """Run `cdc-lake dev` after a demo, for one module, since its sensors would launch runs during other tests."""
    assert demo["exit_code"] == 0
    with running_ui(cli) as found:
        yield found
