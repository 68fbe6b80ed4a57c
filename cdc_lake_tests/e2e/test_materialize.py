"""The graph from a fresh shell, as CI does it: `dagster asset materialize`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from cdc_lake_tests.e2e.conftest import CommandLine

BOUND_SECONDS = 30.0
TRIES = 3
ALL = ("dagster", "asset", "materialize", "--select", 'group:"northwind"', "-m", "cdc_lake.definitions")


def test_nothing_new(demo: dict[str, Any], cli: CommandLine) -> None:
    """Every stage says that it changed nothing, and all of it takes less than 30 seconds on a machine that is free."""
    cli.run(*ALL)
    took = []
    while not took or (min(took) > BOUND_SECONDS and len(took) < TRIES):
        started = time.monotonic()
        assert "RUN_SUCCESS" in cli.run(*ALL).stderr
        took.append(time.monotonic() - started)
    assert min(took) < BOUND_SECONDS, took
    assert demo["stages"]["lake"] == 829


def test_with_the_stack_down(cli: CommandLine, tmp_path: Path) -> None:
    down = CommandLine(cli.stack, {**cli.environment, "CDC_LAKE_HOME": str(tmp_path / "never-started")})
    done = down.run(*ALL, ok=False, timeout=120)
    assert done.returncode != 0
    assert "cdc-lake up" in done.stdout + done.stderr
