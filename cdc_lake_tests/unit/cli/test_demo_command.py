"""`cdc-lake demo`: what it prints, and when its exit code is 1."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from typer.testing import CliRunner, Result

from cdc_lake import instance
from cdc_lake.cli.app import app, main
from cdc_lake.contract.errors import ContractError
from cdc_lake.demo import steps
from cdc_lake.demo.journal import Journal
from infra.local import preparation

SUMMARY: dict[str, Any] = {
    "stages": {"source": 829, "topic": 829, "raw": 829, "lake": 829, "dataset": 2152},
    "records": {"topic": 900, "raw": 900},
    "stories": {
        "shipped": {"order_id": 11077, "events": 1, "ok": True},
        "inserted": {"order_id": 11075, "events": 4, "ok": True},
        "deleted": {"order_id": 11075, "items_in_dataset": 0, "ok": True},
    },
    "checks": {"passed": 15, "failed": 0, "faults": {}},
    "seconds": {"load": 1.5, "raw": 2.0},
    "dashboard": "/home/pages/northwind/customers.html",
}


class FakeDemo:
    """Stands for the demo: gives a summary, or fails."""

    summary: dict[str, Any]
    error: Exception | None
    journals: list[list[str]]

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401 - as Demo's
        self._journal, self._show = arguments[3], arguments[4]
        self.journals.append(list(self._journal.seconds()))

    def run(self) -> dict[str, Any]:
        """See Demo."""
        self._show.step("load", "loading the sample database")
        if self.error is not None:
            raise self.error
        self._show.done("load", "1.5 s")
        return self.summary


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[FakeDemo]:
    """The demo's surroundings, faked."""

    class Fake(FakeDemo):
        summary = deepcopy(SUMMARY)
        error = None
        journals: list[list[str]] = []  # noqa: RUF012 - a class for each test

    @contextmanager
    def no_instance() -> Iterator[None]:
        yield None

    monkeypatch.setenv("CDC_LAKE_HOME", str(tmp_path))
    monkeypatch.setattr(steps, "Demo", Fake)
    monkeypatch.setattr(preparation, "prepare", lambda _console: {"setup": 0.1, "up": 20.0})
    monkeypatch.setattr(instance, "instance", no_instance)
    monkeypatch.setattr("cdc_lake.profile.resolved", dict)
    return Fake


def run(*arguments: str) -> Result:
    """The command."""
    return CliRunner().invoke(app, ["demo", *arguments])


@pytest.mark.usefixtures("fake")
def test_json_is_one_object_of_the_promised_shape() -> None:
    found = run("--json")
    assert found.exit_code == 0
    summary = json.loads(found.stdout)
    assert summary["stages"] == {"source": 829, "topic": 829, "raw": 829, "lake": 829, "dataset": 2152}
    assert {"passed": 15, "failed": 0}.items() <= summary["checks"].items()
    assert list(summary["stories"]) == ["shipped", "inserted", "deleted"]
    assert list(summary["seconds"]) == ["setup", "up", "load", "raw", "total"]
    assert summary["dashboard"] == "/home/pages/northwind/customers.html"
    assert {"stages", "stories", "checks", "seconds", "dashboard"} <= summary.keys()
    assert "loading the sample database" in found.stderr


@pytest.mark.usefixtures("fake")
def test_for_people() -> None:
    found = run()
    assert found.exit_code == 0
    said = found.stdout
    assert "829 (900 records)" in said
    assert "2,152" in said
    assert "✓ order 11077 shipped: events 1" in said
    assert "checks: 15 passed, 0 failed" in said
    assert "dashboard: /home/pages/northwind/customers.html" in said
    assert "cdc-lake dev" in said


def test_a_failed_check(fake: type[FakeDemo]) -> None:
    fake.summary["checks"] = {"passed": 14, "failed": 1, "faults": {"northwind/lake/cdc_events:keys_unique": "twice"}}
    found = run()
    assert found.exit_code == 1
    assert "✗ northwind/lake/cdc_events:keys_unique: twice" in found.stdout
    assert run("--json").exit_code == 1


def test_a_failed_story(fake: type[FakeDemo]) -> None:
    fake.summary["stories"]["inserted"]["ok"] = False
    found = run()
    assert found.exit_code == 1
    assert "✗ order 11075 inserted" in found.stdout


@pytest.mark.parametrize("stage", ["source", "topic", "raw", "lake"])
def test_stages_that_differ(fake: type[FakeDemo], stage: str) -> None:
    fake.summary["stages"][stage] = 828
    assert run("--json").exit_code == 1


def test_a_demo_that_stops_says_how_to_go_on(fake: type[FakeDemo]) -> None:
    fake.error = ContractError("the connector is gone")
    found = run("--json")
    assert found.exception is fake.error
    assert "cdc-lake demo --resume" in found.stderr
    assert found.stdout == ""


def test_resume_goes_on_with_the_journal(fake: type[FakeDemo], tmp_path: Path) -> None:
    Journal(tmp_path / "demo.json", resume=False).step("load", lambda: 1)
    run("--resume")
    run("--json")
    assert fake.journals == [["load"], []]


def test_what_is_cut_off_while_the_stack_starts_does_not_resume_the_demo_before(
    fake: type[FakeDemo], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Journal(tmp_path / "demo.json", resume=False).step("load", lambda: 1)
    with monkeypatch.context() as patch:
        patch.setattr(preparation, "prepare", lambda _console: (_ for _ in ()).throw(KeyboardInterrupt))
        run()
    run("--resume")
    assert fake.journals == [[]]


def test_a_second_demo_on_the_folder_ends_at_once_and_changes_nothing(
    fake: type[FakeDemo], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Journal(tmp_path / "demo.json", resume=False).step("load", lambda: 1)
    monkeypatch.setattr("sys.argv", ["cdc-lake", "demo", "--json"])
    with FileLock(tmp_path / "demo.lock"), pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    printed = capsys.readouterr()
    assert f"another `cdc-lake demo` is running on the state folder {tmp_path}" in printed.err
    assert printed.out == ""
    assert fake.journals == []
    assert (tmp_path / "demo.json").exists()


@pytest.mark.usefixtures("fake")
def test_the_demo_before_lets_go_of_the_folder(fake: type[FakeDemo]) -> None:
    fake.error = ContractError("the connector is gone")
    run()
    fake.error = None
    assert run().exit_code == 0


@pytest.mark.usefixtures("fake")
def test_scripts_that_are_not_there(tmp_path: Path) -> None:
    assert run("--sql-dir", str(tmp_path / "none")).exit_code == 2
