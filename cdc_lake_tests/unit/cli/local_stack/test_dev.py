"""`cdc-lake dev`: Dagster in its own session, with this project and state folder."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cdc_lake.cli.app import app
from cdc_lake.cli.local_stack import process_session
from cdc_lake.profile_local import SPARK_SOCKET


def test_dev_runs_dagster_in_its_own_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str | Path]] = []

    def run(command: list[str | Path]) -> int:
        started.append(command)
        return 5

    monkeypatch.setattr(process_session, "run", run)
    monkeypatch.setenv("CDC_LAKE_HOME", str(tmp_path))
    monkeypatch.setenv("DAGSTER_HOME", "/elsewhere")
    monkeypatch.setenv(SPARK_SOCKET, "/elsewhere")
    assert CliRunner().invoke(app, ["dev", "--port", "3456"]).exit_code == 5
    [command] = started
    assert command[:4] == [sys.executable, "-m", "cdc_lake.webserver.dev", "dev"]
    assert command[4:6] == ["--module-name", "cdc_lake.definitions"]
    assert command[6:] == ["--host", "127.0.0.1", "--port", "3456"]
    assert os.environ["DAGSTER_HOME"] == str(tmp_path / "dagster")
    assert os.environ[SPARK_SOCKET].endswith("spark.sock")
    settings = yaml.safe_load((tmp_path / "dagster" / "dagster.yaml").read_text())
    assert settings["telemetry"] == {"enabled": False}
