"""kill -9 of each component in the middle of a demo, `cdc-lake up`, and the rest of the demo: the same result."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tenacity import Retrying, retry_if_result, stop_after_delay, wait_fixed

from cdc_lake_tests.e2e.conftest import CommandLine
from cdc_lake_tests.e2e.test_demo import check

# The step before the one that the component is killed in, and the component.
KILLS = (
    ("load", "postgres"),
    ("source", "connect"),
    ("topic", "kafka"),
    ("raw", "s3"),
    ("lake", "trino"),
    ("dataset", "aws"),
    ("story shipped", "connect"),
)


@pytest.mark.timeout(1500)
def test_each_component_once(cli: CommandLine) -> None:
    journal = cli.stack.home.path / "demo.json"
    journal.unlink(missing_ok=True)
    running = cli.start("cdc-lake", "demo")
    for step, component in KILLS:
        _wait_for(journal, step, running)
        _kill(cli, component)
        if running.wait(timeout=600) == 0:
            break
        cli.run("cdc-lake", "up")
        running = cli.start("cdc-lake", "demo", "--resume")
    running.wait(timeout=600)
    summary: dict[str, Any] = json.loads(cli.run("cdc-lake", "demo", "--resume", "--json").stdout)
    check(summary)


def _wait_for(journal: Path, step: str, running: subprocess.Popen[str]) -> None:
    """Return as soon as the step is in the journal, or the demo has ended."""

    def reached() -> bool:
        done = journal.exists() and step in json.loads(journal.read_text())
        return done or running.poll() is not None

    Retrying(retry=retry_if_result(lambda there: not there), stop=stop_after_delay(300), wait=wait_fixed(0.05))(reached)


def _kill(cli: CommandLine, component: str) -> None:
    """kill -9 of the component's process; whatever it started ends with it or is found by the next `up`."""
    status = {found.name: found for found in cli.stack.status()}[component]
    if status.pid is not None:
        os.kill(status.pid, signal.SIGKILL)
