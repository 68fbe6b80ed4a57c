"""`cdc-lake dev`: Dagster in this process's place, on this project and this state folder."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from cdc_lake.cli.app import app


def test_dagster_takes_the_process_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[tuple[Path, list[str]]] = []
    monkeypatch.setattr(os, "execv", lambda path, arguments: started.append((path, arguments)))
    monkeypatch.setenv("CDC_LAKE_HOME", str(tmp_path))
    monkeypatch.setenv("DAGSTER_HOME", "/elsewhere")
    assert CliRunner().invoke(app, ["dev", "--port", "3456"]).exit_code == 0
    [(command, arguments)] = started
    assert command.name == "dagster"
    assert arguments[0] == str(command)
    assert arguments[1:4] == ["dev", "--module-name", "cdc_lake.definitions"]
    assert arguments[4:] == ["--host", "127.0.0.1", "--port", "3456"]
    assert os.environ["DAGSTER_HOME"] == str(tmp_path / "dagster")
    settings = yaml.safe_load((tmp_path / "dagster" / "dagster.yaml").read_text())
    assert settings["telemetry"] == {"enabled": False}
