"""What the commands about the embedded stack say in another profile, and that the others take the profile's systems."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from cdc_lake.cli import load
from cdc_lake.cli.app import app, main
from cdc_lake.cli.query import _athena
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.loader import LoadReport
from cdc_lake_tests.fakes.account import bind
from resources.athena import Athena

LOCAL = {
    "up": [],
    "down": [],
    "status": ["--json"],
    "logs": ["kafka"],
    "doctor": [],
    "env": ["--show-secrets"],
    "demo": ["--json"],
}


@pytest.fixture(autouse=True)
def aws(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The profile aws."""
    bind(monkeypatch, tmp_path)


@pytest.mark.parametrize("command", LOCAL)
def test_it_says_whose_it_is_and_does_nothing(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("infra.local.stack.state_folder.find_home", lambda *_: pytest.fail("the stack was looked for"))
    monkeypatch.setattr(sys, "argv", ["cdc-lake", command, *LOCAL[command]])
    with pytest.raises(SystemExit) as ended:
        main()
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (1, "")
    assert f"error: Cannot run `cdc-lake {command}`: it manages the stack on this machine" in told.err
    assert "CDC_LAKE_PROFILE is 'aws'. " in told.err
    assert told.err.endswith(f"`CDC_LAKE_PROFILE=local cdc-lake {command}` runs it on the local stack.\n")


def test_the_demo_names_what_to_run_instead() -> None:
    assert "`cdc-lake aws smoke`" in str(CliRunner().invoke(app, ["demo"]).exception)


@pytest.mark.parametrize("command", LOCAL)
def test_help_is_for_everybody(command: str) -> None:
    done = CliRunner().invoke(app, [command, "--help"])
    assert done.exit_code == 0
    assert [option for option in LOCAL[command] if option.startswith("--") and option not in done.stdout] == []


def test_queries_go_to_the_profile_s_workgroup_and_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_LAKE_CATALOG", "shop_lake")
    found, other = _athena(None), _athena("other")
    assert isinstance(found, Athena)
    assert (found.workgroup, found.database, other.database) == ("cdc-lake-dev", "shop_lake", "other")


@pytest.fixture
def loaded(monkeypatch: pytest.MonkeyPatch) -> list[ConnectionParameters]:
    """Where the sample was loaded; the profile's source has a login."""
    found: list[ConnectionParameters] = []

    def take(parameters: ConnectionParameters, *_: object) -> LoadReport:
        found.append(parameters)
        return LoadReport(tables=(("orders", 829),), wal_level="logical", seconds=0.1)

    login = SimpleNamespace(host="source.example", port=5433, user="dagster", password="secret")
    postgres = SimpleNamespace(login=lambda: login, database="devdb")
    monkeypatch.setattr("cdc_lake.profile.resolved", lambda: {"postgres": postgres})
    monkeypatch.setattr(load, "load", take)
    return found


def test_the_sample_is_loaded_into_the_profile_s_source(loaded: list[ConnectionParameters]) -> None:
    done = CliRunner().invoke(app, ["load"], input="y\n")
    assert done.exit_code == 0, done.output
    assert loaded == [ConnectionParameters("source.example", 5433, "devdb", "dagster", "secret")]
    assert "source.example" in done.stdout, "it says where before it asks"
    assert "secret" not in done.stdout


def test_another_server_is_still_another(loaded: list[ConnectionParameters], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "own")
    assert CliRunner().invoke(app, ["load", "-h", "localhost", "--yes"]).exit_code == 0
    assert loaded == [ConnectionParameters("localhost", 5432, "devdb", "postgres", "own")]
