"""`cdc-lake resnapshot`: confirmation, output, and the recorded reason."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from typer.testing import CliRunner, Result

from cdc_lake import profile
from cdc_lake.cli.app import app
from cdc_lake.contract.source.epochs import Break, Epochs
from cdc_lake.pipeline import connector_config
from cdc_lake.pipeline.operations import resnapshot, resnapshot_steps
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.source_health import stream_continuity
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop


@pytest.fixture
def reasons(commands: Shop, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The reasons of the resnapshots, with the shop in its first epoch."""
    found: list[str] = []

    def steps(pipeline: Pipeline, systems: resnapshot_steps.ResnapshotSystems, reason: str) -> Iterator[str]:
        assert systems.postgres.database == pipeline.spec.source.database
        found.append(reason)
        yield "epoch 1 is complete"

    monkeypatch.setattr(resnapshot, "resnapshot", steps)
    monkeypatch.setattr(profile, "spark", lambda: commands.spark)
    monkeypatch.setattr(
        connector_config,
        "connector_config",
        lambda *_: {"connector.class": "Debezium", "exactly.once.support": "required"},
    )
    commands.connect.put(
        commands.pipeline.connector, {"connector.class": "Debezium", "exactly.once.support": "required"}
    )
    stream_continuity.begin(commands.pipeline, commands.source, commands.connect, commands.bucket)
    return found


def run(*arguments: str, answer: str | None = None) -> Result:
    """Run the command with this answer to its confirmation."""
    return CliRunner().invoke(app, ["resnapshot", *arguments], input=answer)


def test_resnapshot_with_yes_uses_the_given_reason(reasons: list[str]) -> None:
    found = run("shop", "--yes", "--reason", "we moved")
    assert (found.exit_code, found.stdout) == (0, "epoch 1 is complete\n")
    assert reasons == ["we moved"]


def test_resnapshot_without_confirmation_does_nothing(reasons: list[str]) -> None:
    found = run("shop", answer="n\n")
    assert found.exit_code == 1
    assert "Drop replication slot cdc_lake_shop" in found.stdout
    assert reasons == []


def test_recorded_faults_precede_the_given_reason(reasons: list[str], commands: Shop) -> None:
    epochs = Epochs(commands.bucket, "shop")
    epochs.mark_broken(0, Break(faults=("the slot is gone", "a heartbeat is missing"), found_at=datetime.now(UTC)))
    assert run("shop", "--reason", "we moved", answer="y\n").exit_code == 0
    assert reasons == ["the slot is gone; a heartbeat is missing; we moved"]
