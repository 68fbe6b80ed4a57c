"""A whole stack for the end-to-end tests, in a state folder of its own, driven by the command line as people do."""

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

from cdc_lake_tests.collection_order import group
from cdc_lake_tests.e2e.dagster_ui import Ui, running_ui
from cdc_lake_tests.local_stack import scratch_home
from infra.local.stack.attach import load_endpoints
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome

BIN = Path(sys.executable).parent
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _together(request: pytest.FixtureRequest, worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Tests of one group go on from one another: spread over processes they would need their stack twice."""
    ours = group(request.node.nodeid)
    claim = tmp_path_factory.getbasetemp().parent / f"{ours} of {os.getppid()}"
    with suppress(FileExistsError), claim.open("x") as first:
        first.write(worker_id)
    assert claim.read_text() == worker_id, f"the tests of {ours} are spread over processes"


@dataclass(frozen=True)
class CommandLine:
    """`cdc-lake` and others on one stack."""

    stack: Stack
    environment: dict[str, str]

    def run(self, *command: str, timeout: float = 600, ok: bool = True) -> subprocess.CompletedProcess[str]:
        """Run a program of the virtual environment; fails the test on another exit code than 0, unless not `ok`."""
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
            said = f"{done.stdout}\n{done.stderr}"
            assert done.returncode == 0, f"{' '.join(command)} ended with {done.returncode}:\n{said}"
        return done

    def start(self, *command: str) -> subprocess.Popen[str]:
        """Start a program of the virtual environment and leave it running; its output is dropped."""
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
        """Rows of an Athena query through `cdc-lake query`."""
        rows: list[dict[str, Any]] = json.loads(self.run("cdc-lake", "query", sql, "--format", "json").stdout)
        return rows

    def ask_source(self, sql: str) -> list[tuple[Any, ...]]:
        """Rows of a statement at the source, which is committed."""
        at = load_endpoints(self.stack.home.path)
        login = {"host": at.postgres_host, "port": at.postgres_port, "user": at.postgres_user, "dbname": "devdb"}
        password = at.postgres_password.get_secret_value()
        with (
            closing(psycopg2.connect(**login, password=password)) as connection,
            connection,
            connection.cursor() as cursor,
        ):
            cursor.execute(sql)
            return cursor.fetchall()


# Not the whole session, of which other tests may be a part, beside which the stack would run on.
@pytest.fixture(scope="package")
def cli() -> Iterator[CommandLine]:
    """The command line on a running stack."""
    own = ("CDC_LAKE_HOME", "CDC_LAKE_PORT_", "DAGSTER_HOME")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(own)}
    with scratch_home() as home:
        # By the command, as people do: what this process started itself would stay a zombie when it is killed, and
        # PostgreSQL takes a zombie for a running server.
        found = CommandLine(Stack(StackHome(home)), {**inherited, "CDC_LAKE_HOME": str(home)})
        try:
            found.run("cdc-lake", "up")
            yield found
        finally:
            found.run("cdc-lake", "down")


@pytest.fixture(scope="package")
def demo(cli: CommandLine) -> dict[str, Any]:
    """The summary of a demo from nothing."""
    done = cli.run("cdc-lake", "demo", "--json", ok=False)
    assert done.stdout, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    return {**summary, "exit_code": done.returncode, "stderr": done.stderr}


@pytest.fixture(scope="module")
def ui(cli: CommandLine, demo: dict[str, Any]) -> Iterator[Ui]:
    """`cdc-lake dev` after a demo, for one module: its sensors would launch runs beside the other tests."""
    assert demo["exit_code"] == 0
    with running_ui(cli) as found:
        yield found
