"""`cdc-lake load`: options, confirmation and errors, without a server."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from cdc_lake import profile
from cdc_lake.cli.samples import load as command
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.errors import LoadError
from cdc_lake.samples.load_report import LoadReport
from cdc_lake.samples.loadable import SAMPLES, LoadSample
from resources.postgres.resource import Postgres

REPORT = LoadReport(tables=(("orders", 829), ("cdc_events", 829)), wal_level="logical", seconds=0.2)


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.callback()(lambda: None)
    command.register(app)
    return app


@pytest.fixture
def loader_calls(monkeypatch: pytest.MonkeyPatch) -> list[tuple[ConnectionParameters, Path | None]]:
    """The arguments of the loader's calls; the loader is a fake."""
    calls: list[tuple[ConnectionParameters, Path | None]] = []

    def load(parameters: ConnectionParameters, sql_dir: Path | None, *_: object) -> LoadReport:
        calls.append((parameters, sql_dir))
        return REPORT

    replace_loader(monkeypatch, "northwind", load)
    monkeypatch.delenv("PGPASSWORD", raising=False)
    return calls


def replace_loader(monkeypatch: pytest.MonkeyPatch, sample: str, load: LoadSample) -> None:
    """Replace the loader of a sample by a fake."""
    monkeypatch.setitem(SAMPLES, sample, replace(SAMPLES[sample], load=load))


Calls = list[tuple[ConnectionParameters, Path | None]]


def test_short_options_are_accepted_and_the_password_is_hidden(app: typer.Typer, loader_calls: Calls) -> None:
    arguments = ["load", "-h", "db.example", "-p", "6543", "-d", "shop", "-u", "ann", "--sql-dir", "mine"]
    result = CliRunner().invoke(app, arguments, input="secret\ny\n")
    assert result.exit_code == 0, result.output
    assert loader_calls == [(ConnectionParameters("db.example", 6543, "shop", "ann", "secret"), Path("mine"))]
    assert "secret" not in result.output
    assert "829" in result.output


def test_without_a_host_the_sample_is_loaded_into_the_profiles_source(
    app: typer.Typer, loader_calls: Calls, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = Postgres(host="stack", port=15432, user="owner", password="secret", database="devdb")
    monkeypatch.setattr(profile, "resolved", lambda: {"postgres": source})
    assert CliRunner().invoke(app, ["load", "--yes"]).exit_code == 0
    assert loader_calls == [(ConnectionParameters("stack", 15432, "devdb", "owner", "secret"), None)]


def test_nothing_is_loaded_without_confirmation(app: typer.Typer, loader_calls: Calls) -> None:
    result = CliRunner().invoke(app, ["load", "--host", "db"], input="secret\nn\n")
    assert result.exit_code == 1
    assert loader_calls == []


def test_h_is_the_host_and_help_has_no_short_option(app: typer.Typer) -> None:
    assert CliRunner().invoke(app, ["load", "-h"]).exit_code == 2
    result = CliRunner().invoke(app, ["load", "--help"])
    assert result.exit_code == 0
    assert "--sql-dir" in result.output


def test_the_password_is_not_in_the_repr_of_the_parameters() -> None:
    parameters = ConnectionParameters("h", 1, "d", "u", "secret")
    assert "secret" not in f"{parameters} {parameters!r}"


def test_an_error_is_shown_without_a_traceback(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object) -> LoadReport:
        raise LoadError("it failed [not markup]: do this")

    replace_loader(monkeypatch, "northwind", load)
    monkeypatch.setenv("PGPASSWORD", "secret")
    result = CliRunner().invoke(app, ["load", "--yes"])
    assert result.exit_code == 1
    assert "it failed [not markup]: do this" in result.stderr
    assert "Traceback" not in result.output


def test_invalid_scripts_are_rejected_before_connecting(
    app: typer.Typer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "secret")
    (tmp_path / "a.sql").write_text("SELECT 1;\nCOMMIT;")
    result = CliRunner().invoke(app, ["load", "--yes", "-h", "127.0.0.1", "-p", "1", "--sql-dir", str(tmp_path)])
    assert result.exit_code == 1
    assert "a.sql, line 2: COMMIT" in result.stderr


def test_the_moma_sample_takes_a_file_for_each_table(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[ConnectionParameters, Mapping[str, Path]]] = []

    def load(parameters: ConnectionParameters, _: object, files: Mapping[str, Path], *_progress: object) -> LoadReport:
        calls.append((parameters, files))
        return LoadReport((("artists", 7),), "logical", 0.1)

    replace_loader(monkeypatch, "moma", load)
    monkeypatch.setenv("PGPASSWORD", "secret")
    arguments = ["load", "--sample", "moma", "--csv", "artists=a.txt", "--csv", "artworks=b=c.txt", "--yes"]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    [(parameters, files)] = calls
    assert (parameters.dbname, files) == ("moma", {"artists": Path("a.txt"), "artworks": Path("b=c.txt")})
    assert "Database moma" in result.output


def test_the_pagila_sample_takes_scripts(app: typer.Typer, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: Calls = []

    def load(parameters: ConnectionParameters, sql_dir: Path | None, *_: object) -> LoadReport:
        calls.append((parameters, sql_dir))
        return LoadReport((("film", 1000),), "logical", 0.1)

    replace_loader(monkeypatch, "pagila", load)
    source = Postgres(host="stack", port=15432, user="owner", password="secret", database="devdb")
    monkeypatch.setattr(profile, "resolved", lambda: {"postgres": source})
    result = CliRunner().invoke(app, ["load", "--sample", "pagila", "--sql-dir", "mine"], input="y\n")
    assert result.exit_code == 0, result.output
    assert calls == [(ConnectionParameters("stack", 15432, "pagila", "owner", "secret"), Path("mine"))]
    output = " ".join(result.output.split())
    assert "Create tables actor, address, category" in output
    assert "from the scripts in mine?" in output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--csv", "artists=a.txt"], "--csv can be used with moma only"),
        (["--sample", "pagila", "--csv", "film=a.txt"], "--csv can be used with moma only"),
        (
            ["--sample", "moma", "--sql-dir", "mine"],
            "--sql-dir cannot be used with moma, only with northwind and pagila. Use --csv instead.",
        ),
        (["--sample", "moma", "--csv", "artists"], "'artists' does not have the form TABLE=FILE"),
        (["--port", "5433"], "--port and --user belong to --host"),
        (["--user", "me"], "--port and --user belong to --host"),
        (["--sample", "moma", "--csv", "artists=a", "--csv", "artists=b"], "table artists is given twice"),
    ],
)
def test_options_of_another_sample_are_refused(app: typer.Typer, arguments: list[str], message: str) -> None:
    result = CliRunner().invoke(app, ["load", "--yes", *arguments])
    assert result.exit_code == 2
    assert message in " ".join(result.output.replace("│", " ").split())
