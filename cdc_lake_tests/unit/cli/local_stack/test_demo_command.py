"""`cdc-lake demo`: output and exit code."""

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
from cdc_lake.demo.demos import UserRows
from cdc_lake.demo.journal import Journal
from cdc_lake_tests.unit.cli.demo_summary import SUMMARY
from infra.local import preparation


class FakeDemo:
    """A fake demo that returns a summary or fails."""

    summary: dict[str, Any]
    error: Exception | None
    journals: list[list[str]]
    given: list[UserRows]

    def __init__(self, *arguments: Any) -> None:  # noqa: ANN401 - same signature as Demo
        self._journal, self._show = arguments[3], arguments[4]
        self.journals.append(list(self._journal.seconds()))
        self.given.append(arguments[5])

    def run(self) -> dict[str, Any]:
        """Report one step and return the summary."""
        self._show.step("load", "loading the sample database")
        if self.error is not None:
            raise self.error
        self._show.done("load", "1.5 s")
        return self.summary


@pytest.fixture
def fake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[FakeDemo]:
    """A fake demo with fake preparation and Dagster instance."""

    class Fake(FakeDemo):
        summary = deepcopy(SUMMARY)
        error = None
        journals: list[list[str]] = []  # noqa: RUF012 - each test has its own class
        given: list[UserRows] = []  # noqa: RUF012 - as above

    @contextmanager
    def no_instance() -> Iterator[None]:
        yield None

    monkeypatch.setenv("CDC_LAKE_HOME", str(tmp_path))
    monkeypatch.setattr(steps, "Demo", Fake)
    monkeypatch.setattr(preparation, "prepare", lambda _console, **_options: {"setup": 0.1, "up": 20.0})
    monkeypatch.setattr(instance, "instance", no_instance)
    monkeypatch.setattr("cdc_lake.profile.resolved", dict)
    return Fake


def run(*arguments: str) -> Result:
    """Run the command."""
    return CliRunner().invoke(app, ["demo", *arguments])


@pytest.mark.usefixtures("fake")
def test_json_output_is_one_object_with_documented_keys() -> None:
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
def test_the_default_output_is_readable_text() -> None:
    found = run()
    assert found.exit_code == 0
    output = found.stdout
    assert "829 (900 records)" in output
    assert "2,152" in output
    assert "✓ order 11077 shipped: events 1" in output
    assert "checks: 15 passed, 0 failed" in output
    assert "dashboard: /home/pages/northwind/customers.html" in output
    assert "cdc-lake dev" in output


def test_a_failed_check_exits_with_1(fake: type[FakeDemo]) -> None:
    fake.summary["checks"] = {
        "passed": 14,
        "failed": 1,
        "faults": {"northwind/lake/cdc_events_lake:keys_unique": "twice"},
    }
    found = run()
    assert found.exit_code == 1
    assert "✗ northwind/lake/cdc_events_lake:keys_unique: twice" in found.stdout
    assert run("--json").exit_code == 1


def test_a_failed_example_change_exits_with_1(fake: type[FakeDemo]) -> None:
    fake.summary["stories"]["inserted"]["ok"] = False
    found = run()
    assert found.exit_code == 1
    assert "✗ order 11075 inserted" in found.stdout


@pytest.mark.parametrize("stage", ["source", "topic", "raw", "lake"])
def test_different_row_counts_exit_with_1(fake: type[FakeDemo], stage: str) -> None:
    fake.summary["tables"]["cdc_events"]["stages"][stage] = 828
    assert run("--json").exit_code == 1


def test_a_failed_demo_advises_to_resume(fake: type[FakeDemo]) -> None:
    fake.error = ContractError("the connector is gone")
    found = run("--json")
    assert found.exception is fake.error
    assert "cdc-lake demo --resume" in found.stderr
    assert found.stdout == ""


def test_resume_continues_with_the_journal(fake: type[FakeDemo], tmp_path: Path) -> None:
    Journal(tmp_path / "demo.json", resume=False).step("load", lambda: 1)
    run("--resume")
    run("--json")
    assert fake.journals == [["load"], []]


def test_no_resume_starts_a_new_journal(fake: type[FakeDemo], tmp_path: Path) -> None:
    Journal(tmp_path / "demo.json", resume=False).step("load", lambda: 1)
    assert run("--no-resume").exit_code == 0
    assert fake.journals == [[]]


def test_an_interruption_while_the_stack_starts_does_not_resume_the_previous_demo(
    fake: type[FakeDemo], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Journal(tmp_path / "demo.json", resume=False).step("load", lambda: 1)
    with monkeypatch.context() as patch:
        patch.setattr(preparation, "prepare", lambda _console, **_options: (_ for _ in ()).throw(KeyboardInterrupt))
        run()
    run("--resume")
    assert fake.journals == [[]]


def test_a_second_demo_on_the_same_folder_fails_and_changes_nothing(
    fake: type[FakeDemo], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    Journal(tmp_path / "demo.json", resume=False).step("load", lambda: 1)
    monkeypatch.setattr("sys.argv", ["cdc-lake", "demo", "--json"])
    with FileLock(tmp_path / "demo.lock"), pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 1
    printed = capsys.readouterr()
    assert f"another one is running on the state folder {tmp_path}" in printed.err
    assert printed.out == ""
    assert fake.journals == []
    assert (tmp_path / "demo.json").exists()


@pytest.mark.usefixtures("fake")
def test_a_failed_demo_releases_its_lock(fake: type[FakeDemo]) -> None:
    fake.error = ContractError("the connector is gone")
    run()
    fake.error = None
    assert run().exit_code == 0


MOMA = {
    "stages": {"source": 3000, "topic": 3000, "raw": 3000, "cow": 3000, "mor": 3000, "dataset": 2000},
    "tables": {
        name: {"stages": dict.fromkeys(("source", "topic", "raw", "cow", "mor"), rows), "records": {}}
        for name, rows in (("artists", 1000), ("artworks", 2000))
    },
    "datasets": {"collection": 2000, "artworks_by_nationality": 204},
    "stories": {
        "changed": {"artist_id": 441, "states": ["a", "b"], "instants": {"mor": ["20261125100000000"]}, "ok": True}
    },
    "verify": {name: {"clean": True, "compared": 999, "source_rows": 999} for name in ("cow.artists", "mor.artists")},
}


def test_a_demo_of_several_tables_and_targets_is_shown(fake: type[FakeDemo], tmp_path: Path) -> None:
    fake.summary.update(deepcopy(MOMA))
    Journal(tmp_path / "demo.json", resume=False).step("load", lambda: 1)
    found = run("moma", "--resume")
    assert found.exit_code == 0, found.output
    lines = [" ".join(line.replace("│", " ").split()) for line in found.stdout.splitlines()]
    assert {"lake cow 1,000 2,000 0.0", "lake mor 1,000 2,000", "dataset artworks_by_nationality 204"} <= set(lines)
    assert "✓ artist 441 changed: states (a, b)" in lines
    assert "verify: mor.artists: 999 rows compared, equal" in lines
    assert "cdc-lake query --as-of 20261125100000000" in found.stdout
    assert fake.journals == [[]], "the journal of another pipeline's demo"
    assert (tmp_path / "demo.json").exists()


def test_a_table_that_does_not_equal_the_source_exits_with_1(fake: type[FakeDemo]) -> None:
    fake.summary.update(deepcopy(MOMA))
    fake.summary["verify"]["mor.artists"]["clean"] = False
    found = run("moma")
    assert found.exit_code == 1
    assert "mor.artists: 999 rows compared, not equal" in found.stdout


def test_a_failed_demo_of_moma_names_its_own_command(fake: type[FakeDemo]) -> None:
    fake.error = ContractError("the connector is gone")
    assert "cdc-lake demo moma --resume" in run("moma", "--json").stderr


def test_a_demo_of_the_museums_files_has_no_example_changes(fake: type[FakeDemo], tmp_path: Path) -> None:
    file = tmp_path / "artists of 2026.txt"
    file.touch()
    fake.summary.update(deepcopy(MOMA), stories={})
    found = run("moma", "--csv", f"artists={file}")
    assert found.exit_code == 0, found.output
    assert fake.given == [UserRows(files={"artists": file})]
    assert "FROM moma_cow.artists_current" in found.stdout
    fake.error = ContractError("the connector is gone")
    assert f"cdc-lake demo moma --csv 'artists={file}' --resume" in " ".join(
        run("moma", "--csv", f"artists={file}").stdout.split()
    )


@pytest.mark.usefixtures("fake")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("moma", "--sql-dir", "."), "cannot be used with moma"),
        (("pagila", "--csv", "artists=artists.txt"), "--csv can be used with moma only"),
        (("moma", "--csv", "artists"), "does not have the form TABLE=FILE"),
        (("moma", "--csv", "artists=nowhere.txt"), "There is no file nowhere.txt"),
        (("x",), "moma"),
    ],
)
def test_wrong_arguments_are_rejected(arguments: tuple[str, ...], message: str) -> None:
    found = run(*arguments)
    assert found.exit_code == 2
    assert message in found.output


@pytest.mark.usefixtures("fake")
def test_a_missing_sql_folder_is_rejected(tmp_path: Path) -> None:
    assert run("--sql-dir", str(tmp_path / "none")).exit_code == 2
