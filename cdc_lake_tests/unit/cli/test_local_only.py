"""Commands of the local stack are rejected in another profile; other commands use the profile's systems."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from cdc_lake.cli.app import app, main
from cdc_lake.cli.data.query import _athena
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.load_report import LoadReport
from cdc_lake.samples.loadable import SAMPLES
from cdc_lake_tests.fakes.aws.account import bind
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
    """Use the aws profile."""
    bind(monkeypatch, tmp_path)


@pytest.mark.parametrize("command", LOCAL)
def test_local_commands_are_rejected_in_the_aws_profile(
    command: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("infra.local.stack.state_folder.find_home", lambda *_: pytest.fail("the stack was looked for"))
    monkeypatch.setattr(sys, "argv", ["cdc-lake", command, *LOCAL[command]])
    with pytest.raises(SystemExit) as ended:
        main()
    printed = capsys.readouterr()
    assert (ended.value.code, printed.out) == (1, "")
    assert f"error: Cannot run `cdc-lake {command}`: it manages the stack on this machine" in printed.err
    assert "CDC_LAKE_PROFILE is 'aws'. " in printed.err
    assert printed.err.endswith(f"`CDC_LAKE_PROFILE=local cdc-lake {command}` runs it on the local stack.\n")


def test_demo_names_the_command_for_aws() -> None:
    assert "`cdc-lake aws smoke`" in str(CliRunner().invoke(app, ["demo"]).exception)


@pytest.mark.parametrize("command", LOCAL)
def test_help_works_in_every_profile(command: str) -> None:
    done = CliRunner().invoke(app, [command, "--help"])
    assert done.exit_code == 0
    assert [option for option in LOCAL[command] if option.startswith("--") and option not in done.stdout] == []


def test_queries_use_the_profiles_workgroup_and_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDC_LAKE_CATALOG", "shop_lake")
    found, other = _athena(None), _athena("other")
    assert isinstance(found, Athena)
    assert (found.workgroup, found.database, other.database) == ("cdc-lake-dev", "shop_lake", "other")


@pytest.fixture
def load_targets(monkeypatch: pytest.MonkeyPatch) -> list[ConnectionParameters]:
    """The connections to which the sample was loaded; the profile's source has a login."""
    found: list[ConnectionParameters] = []

    def record_load(parameters: ConnectionParameters, *_: object) -> LoadReport:
        found.append(parameters)
        return LoadReport(tables=(("orders", 829),), wal_level="logical", seconds=0.1)

    login = SimpleNamespace(host="source.example", port=5433, user="dagster", password="secret")
    postgres = SimpleNamespace(login=lambda: login, database="devdb", hint="")
    monkeypatch.setattr("cdc_lake.profile.resolved", lambda: {"postgres": postgres})
    northwind = replace(SAMPLES["northwind"], load=record_load)
    monkeypatch.setitem(SAMPLES, "northwind", northwind)
    return found


def test_load_uses_the_profiles_source(load_targets: list[ConnectionParameters]) -> None:
    done = CliRunner().invoke(app, ["load"], input="y\n")
    assert done.exit_code == 0, done.output
    assert load_targets == [ConnectionParameters("source.example", 5433, "devdb", "dagster", "secret")]
    assert "source.example" in done.stdout, "the target is printed before the confirmation"
    assert "secret" not in done.stdout


def test_load_options_name_another_server(
    load_targets: list[ConnectionParameters], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGPASSWORD", "own")
    assert CliRunner().invoke(app, ["load", "-h", "localhost", "--yes"]).exit_code == 0
    assert load_targets == [ConnectionParameters("localhost", 5432, "devdb", "postgres", "own")]
    named = ["--host", "db.example", "--port", "5433", "--dbname", "shop", "--user", "sally", "--yes"]
    assert CliRunner().invoke(app, ["load", *named]).exit_code == 0
    assert load_targets[1:] == [ConnectionParameters("db.example", 5433, "shop", "sally", "own")]
