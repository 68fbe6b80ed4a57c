"""`cdc-lake down` and `env`: the state folder, and the output with and without secrets."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from cdc_lake.cli.app import app
from infra.local import shell_variables
from infra.local.stack import attach
from infra.local.stack.stack import Stack


def test_down_stops_the_stack_of_its_state_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stopped: list[Path] = []
    monkeypatch.setattr(Stack, "down", lambda stack, *_: stopped.append(stack.home.path))
    assert CliRunner().invoke(app, ["down", "--home", str(tmp_path)]).exit_code == 0
    assert stopped == [tmp_path]


def test_env_prints_secrets_only_on_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def variables(_endpoints: object, show_secrets: bool) -> dict[str, str]:
        return {"PGHOST": "127.0.0.1", **({"PGPASSWORD": "a b"} if show_secrets else {})}

    monkeypatch.setattr(attach, "load_endpoints", lambda _home: None)
    monkeypatch.setattr(shell_variables, "shell_variables", variables)
    without = CliRunner().invoke(app, ["env", "--home", str(tmp_path)])
    assert without.stdout == "export PGHOST=127.0.0.1\n"
    assert "--show-secrets" in without.stderr
    shown = CliRunner().invoke(app, ["env", "--show-secrets", "--home", str(tmp_path)])
    assert shown.stdout == "export PGHOST=127.0.0.1\nexport PGPASSWORD='a b'\n"
    assert shown.stderr == ""
