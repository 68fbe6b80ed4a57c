"""`cdc-lake reset`: confirmation, output, and removal of the demo's journal."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cdc_lake.cli.app import app
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop


@pytest.fixture
def demo_journal(commands: Shop, tmp_path: Path) -> Path:
    """The journal of a demo, with landed orders in the shop."""
    commands.order(1)
    commands.land(commands.orders)
    journal = tmp_path / "home" / "demo.json"
    journal.parent.mkdir()
    journal.write_text("{}")
    return journal


def run(*arguments: str, answer: str | None = None) -> Result:
    """Run the command with this answer to its confirmation."""
    return CliRunner().invoke(app, ["reset", *arguments], input=answer)


@pytest.mark.usefixtures("demo_journal")
def test_reset_with_yes_prints_what_it_removed(commands: Shop) -> None:
    found = run("shop", "--yes")
    assert found.exit_code == 0
    assert found.stdout.splitlines()[:2] == [
        "removed connector cdc-lake-shop with its offsets",
        "removed replication slot cdc_lake_shop",
    ]
    assert commands.kafka.topics() == ()


@pytest.mark.usefixtures("demo_journal")
def test_reset_without_confirmation_removes_nothing(commands: Shop) -> None:
    found = run("shop", answer="n\n")
    assert found.exit_code == 1
    assert "dead letters and lake tables of pipeline shop?" in found.stdout
    assert "The source's tables are kept." in found.stdout
    assert commands.steps.done == []


@pytest.mark.usefixtures("demo_journal")
def test_reset_runs_after_confirmation(commands: Shop) -> None:
    assert run("shop", answer="y\n").exit_code == 0
    assert commands.steps.done


@pytest.mark.usefixtures("demo_journal", "commands")
def test_a_second_reset_removes_nothing() -> None:
    run("shop", "--yes")
    found = run("shop", "--yes")
    assert (found.exit_code, found.stdout) == (0, "pipeline shop has nothing to remove\n")


@pytest.mark.usefixtures("commands")
@pytest.mark.parametrize("demo_pipeline", ["shop", "northwind"])
def test_reset_deletes_the_journal_of_its_own_demo(
    demo_journal: Path, demo_pipeline: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cdc_lake.cli.samples.run_demo._JOURNALS", {demo_pipeline: "demo.json"})
    run("shop", "--yes")
    assert demo_journal.exists() == (demo_pipeline != "shop")
