"""`cdc-lake resnapshot`: asks first, says what it does, and keeps the reason."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner, Result

from cdc_lake import profile
from cdc_lake.cli.app import app
from cdc_lake.contract.source.epochs import Break, Epochs
from cdc_lake.pipeline.assets import topic
from cdc_lake.pipeline.naming import Flow
from cdc_lake.pipeline.operations import resnapshot
from cdc_lake.pipeline.source_health import stream_continuity
from cdc_lake_tests.fake_pipeline import World


@pytest.fixture
def reasons(commands: World, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The shop, begun; with the reasons for which a new snapshot is taken of it."""
    found: list[str] = []

    def steps(flow: Flow, systems: resnapshot.Systems, reason: str) -> Iterator[str]:
        assert systems.postgres.database == flow.spec.source.database
        found.append(reason)
        yield "epoch 1 is complete"

    monkeypatch.setattr(resnapshot, "resnapshot", steps)
    monkeypatch.setattr(profile, "spark", lambda: commands.spark)
    monkeypatch.setattr(
        topic, "connector_config", lambda *_: {"connector.class": "Debezium", "exactly.once.support": "required"}
    )
    commands.connect.put(commands.flow.connector, {"connector.class": "Debezium", "exactly.once.support": "required"})
    stream_continuity.begin(commands.flow, commands.postgres, commands.connect, commands.bucket)
    return found


def run(*arguments: str, answer: str | None = None) -> Result:
    """The command, with what is typed when it asks."""
    return CliRunner().invoke(app, ["resnapshot", *arguments], input=answer)


def test_yes(reasons: list[str]) -> None:
    found = run("shop", "--yes", "--reason", "we moved")
    assert (found.exit_code, found.stdout) == (0, "epoch 1 is complete\n")
    assert reasons == ["we moved"]


def test_it_asks_and_takes_no_for_an_answer(reasons: list[str]) -> None:
    found = run("shop", answer="n\n")
    assert found.exit_code == 1
    assert "Drop replication slot cdc_lake_shop" in found.stdout
    assert reasons == []


def test_what_was_found_is_the_reason(reasons: list[str], commands: World) -> None:
    epochs = Epochs(commands.bucket, "shop")
    epochs.mark_broken(0, Break(faults=("the slot is gone", "a beat is missing"), found_at=datetime.now(UTC)))
    assert run("shop", answer="y\n").exit_code == 0
    assert reasons == ["the slot is gone; a beat is missing"]
