"""The graph from a fresh shell, as CI does it: `dagster asset materialize`."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from cdc_lake_tests.e2e.conftest import CommandLine
from cdc_lake_tests.trial_counts import Tried

ALL = ("dagster", "asset", "materialize", "--select", 'group:"northwind"', "-m", "cdc_lake.definitions")


def test_nothing_new(demo: dict[str, Any], cli: CommandLine, tried: Tried) -> None:
    """After the demos and the tutorial, which made all, it changes nothing; how long that takes is printed (the bound:
    benchmarks/nothing_new.py).
    """
    before = cli.query("SELECT max(_hoodie_commit_time) AS newest, count(*) AS n FROM cdc_events")
    started = time.monotonic()
    assert "RUN_SUCCESS" in cli.run(*ALL).stderr
    tried("seconds for the whole graph with nothing new", round(time.monotonic() - started))
    assert cli.query("SELECT max(_hoodie_commit_time) AS newest, count(*) AS n FROM cdc_events") == before
    assert demo["stages"]["lake"] == 829


def test_with_the_stack_down(cli: CommandLine, tmp_path: Path) -> None:
    down = CommandLine(cli.stack, {**cli.environment, "CDC_LAKE_HOME": str(tmp_path / "never-started")})
    done = down.run(*ALL, ok=False, timeout=120)
    assert done.returncode != 0
    assert "cdc-lake up" in done.stdout + done.stderr
