"""`cdc-lake load` before it reaches a server."""

from __future__ import annotations

from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from cdc_lake.cli import load as command
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.errors import LoadError
from cdc_lake.samples.loader import LoadReport

REPORT = LoadReport(tables=(("orders", 829), ("cdc_events", 829)), wal_level="logical", seconds=0.2)


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.callback()(lambda: None)
    command.register(app)
    return app


@pytest.fixture
def asked_for(monkeypatch: pytest.MonkeyPatch) -> list[tuple[ConnectionParameters, Path | None]]:
    """What the loader was called with; it loads nothing here."""
    calls: list[tuple[ConnectionParameters, Path | None]] = []

    def load(parameters: ConnectionParameters, sql_dir: Path | None, _progress: object) -> LoadReport:
        calls.append((parameters, sql_dir))
        return REPORT

    monkeypatch.setattr(command, "load", load)
    monkeypatch.delenv("PGPASSWORD", raising=False)
    return calls


Calls = list[tuple[ConnectionParameters, Path | None]]


def test_short_options_and_a_hidden_password(app: typer.Typer, asked_for: Calls) -> None:
    arguments = ["load", "-h", "db.example", "-p", "6543", "-d", "shop", "-u", "ann", "--sql-dir", "mine"]
    result = CliRunner().invoke(app, arguments, input="secret\ny\n")
    assert result.exit_code == 0, result.output
    assert asked_for == [(ConnectionParameters("db.example", 6543, "shop", "ann", "secret"), Path("mine"))]
    assert "secret" not in result.output
    assert "829" in result.output


def test_the_defaults(app: typer.Typer, asked_for: Calls, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "secret")
    assert CliRunner().invoke(app, ["load", "--yes"]).exit_code == 0
    assert asked_for == [(ConnectionParameters("localhost", 5432, "devdb", "postgres", "secret"), None)]


def test_nothing_happens_without_a_yes(app: typer.Typer, asked_for: Calls) -> None:
    result = CliRunner().invoke(app, ["load"], input="secret\nn\n")
    assert result.exit_code == 1
    assert asked_for == []


def test_h_is_the_host_and_help_is_spelled_out(app: typer.Typer) -> None:
    assert CliRunner().invoke(app, ["load", "-h"]).exit_code == 2
    result = CliRunner().invoke(app, ["load", "--help"])
    assert result.exit_code == 0
    assert "--sql-dir" in result.output


def test_the_password_is_not_in_what_is_printed_of_the_parameters() -> None:
    parameters = ConnectionParameters("h", 1, "d", "u", "secret")
    assert "secret" not in f"{parameters} {parameters!r}"


def test_an_error_is_shown_without_a_traceback(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object) -> LoadReport:
        raise LoadError("it failed [not markup]: do this")

    monkeypatch.setattr(command, "load", load)
    monkeypatch.setenv("PGPASSWORD", "secret")
    result = CliRunner().invoke(app, ["load", "--yes"])
    assert result.exit_code == 1
    assert "it failed [not markup]: do this" in result.stderr
    assert "Traceback" not in result.output


def test_scripts_are_refused_before_the_server_is_asked(
    app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "secret")
    (tmp_path / "a.sql").write_text("SELECT 1;\nCOMMIT;")
    result = CliRunner().invoke(app, ["load", "--yes", "-p", "1", "--sql-dir", str(tmp_path)])
    assert result.exit_code == 1
    assert "a.sql, line 2: COMMIT" in result.stderr
