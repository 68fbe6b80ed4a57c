"""`cdc-lake reset`: asks first, says what it removed, and forgets the demo."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from cdc_lake.cli.app import app
from cdc_lake_tests.fake_pipeline import World


@pytest.fixture
def remembered(commands: World, tmp_path: Path) -> Path:
    """The shop, and the journal of a demo."""
    commands.order(1)
    commands.land(commands.orders)
    journal = tmp_path / "home" / "demo.json"
    journal.parent.mkdir()
    journal.write_text("{}")
    return journal


def run(*arguments: str, answer: str | None = None) -> Result:
    """The command, with what is typed when it asks."""
    return CliRunner().invoke(app, ["reset", *arguments], input=answer)


@pytest.mark.usefixtures("remembered")
def test_yes(commands: World) -> None:
    found = run("shop", "--yes")
    assert found.exit_code == 0
    assert found.stdout.splitlines()[:2] == [
        "removed connector cdc-lake-shop with its offsets",
        "removed replication slot cdc_lake_shop",
    ]
    assert commands.kafka.topics() == ()


@pytest.mark.usefixtures("remembered")
def test_it_asks_and_takes_no_for_an_answer(commands: World) -> None:
    found = run("shop", answer="n\n")
    assert found.exit_code == 1
    assert "Remove everything that pipeline shop created" in found.stdout
    assert "The source's tables are kept." in found.stdout
    assert commands.steps.done == []


@pytest.mark.usefixtures("remembered")
def test_it_asks_and_goes_on(commands: World) -> None:
    assert run("shop", answer="y\n").exit_code == 0
    assert commands.steps.done


@pytest.mark.usefixtures("remembered", "commands")
def test_a_second_time_there_is_nothing() -> None:
    run("shop", "--yes")
    found = run("shop", "--yes")
    assert (found.exit_code, found.stdout) == (0, "pipeline shop has nothing to remove\n")


@pytest.mark.usefixtures("commands")
@pytest.mark.parametrize("of", ["shop", "northwind"])
def test_the_demo_is_not_resumed_after_it(remembered: Path, of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cdc_lake.cli.northwind.PIPELINE", of)
    run("shop", "--yes")
    assert remembered.exists() == (of != "shop")
