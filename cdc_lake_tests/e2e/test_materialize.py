"""`dagster asset materialize` in a new process, as in CI."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from cdc_lake_tests.helpers.command_line import CommandLine
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

MATERIALIZE_ALL = ("dagster", "asset", "materialize", "--select", 'group:"northwind"', "-m", "cdc_lake.definitions")


def test_a_run_without_new_data_changes_nothing(
    demo: dict[str, Any], cli: CommandLine, count_trials: CountTrials
) -> None:
    """Runs after the demos and the tutorial. The duration is only printed; the benchmark `nothing_new` limits it."""
    before = cli.query("SELECT max(_hoodie_commit_time) AS newest, count(*) AS n FROM cdc_events")
    started = time.monotonic()
    assert "RUN_SUCCESS" in cli.run(*MATERIALIZE_ALL).stderr
    count_trials("seconds for the whole graph with nothing new", round(time.monotonic() - started))
    assert cli.query("SELECT max(_hoodie_commit_time) AS newest, count(*) AS n FROM cdc_events") == before
    assert demo["stages"]["lake"] == 829


def test_a_run_without_a_stack_names_the_command_to_start_it(cli: CommandLine, tmp_path: Path) -> None:
    down = CommandLine(cli.stack, {**cli.environment, "CDC_LAKE_HOME": str(tmp_path / "never-started")})
    done = down.run(*MATERIALIZE_ALL, ok=False, timeout=120)
    assert done.returncode != 0
    assert "cdc-lake up" in done.stdout + done.stderr
