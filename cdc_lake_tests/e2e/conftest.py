"""Fixtures of the end-to-end tests: a whole stack in its own state folder, driven by the command line."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from cdc_lake_tests.e2e.dagster_ui import Ui, running_ui
from cdc_lake_tests.helpers.command_line import CommandLine
from cdc_lake_tests.helpers.local_stack import scratch_home
from cdc_lake_tests.pytest_hooks.collection_order import group
from infra.local.stack.stack import Stack
from infra.local.stack.state_folder import StackHome


@pytest.fixture(autouse=True)
def _together(request: pytest.FixtureRequest, worker_id: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Require that the tests of a group run in one process: each continues from the previous one's state."""
    name = group(request.node.nodeid)
    claim = tmp_path_factory.getbasetemp().parent / f"{name} of {os.getppid()}"
    with suppress(FileExistsError), claim.open("x") as first:
        first.write(worker_id)
    assert claim.read_text() == worker_id, f"the tests of {name} are spread over processes"


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
