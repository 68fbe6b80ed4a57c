"""The light checks while nothing runs: red when the connector stands still, and reported once for each change."""

from __future__ import annotations

from datetime import UTC, datetime

import dagster as dg
import pytest

from cdc_lake.contract.epochs import Completion, Epochs
from cdc_lake.pipeline import continuity
from cdc_lake.pipeline.watch import AGAIN_SECONDS
from cdc_lake_tests.unit.pipeline.sensors.daemon import Clock, Daemon
from cdc_lake_tests.world import World
from resources.errors import AccessRefused, Unreachable
from resources.metrics import UNLANDED, WATERMARK_AGE

CHECKS = 2 * 5  # of each table: connector and slot, and the watermark of three stages


@pytest.fixture
def begun(shop: World) -> World:
    """The shop after its first snapshot."""
    shop.connect.put(shop.flow.connector, {"connector.class": "Debezium"})
    continuity.begin(shop.flow, shop.postgres, shop.connect, shop.bucket)
    Epochs(shop.bucket, "shop").complete(0, Completion(snapshot_lsn=1, completed_at=datetime.now(UTC)))
    for table in shop.flow.tables:
        shop.land(table)
        shop.apply(table)
    shop.beat()
    return shop


def reported(daemon: Daemon) -> dict[str, bool]:
    """What a tick reports: whether it passed, by asset and check."""
    found = daemon.tick()
    assert isinstance(found, dg.SensorResult)
    assert not found.run_requests
    events = [event for event in found.asset_events if isinstance(event, dg.AssetCheckEvaluation)]
    return {f"{'/'.join(event.asset_key.path)}:{event.check_name}": event.passed for event in events}


def test_a_pipeline_that_has_not_begun_is_left_alone(shop: World, watching: Daemon) -> None:
    assert reported(watching) == {}
    assert shop.metrics.told == []


@pytest.mark.usefixtures("begun")
def test_green_is_reported_once_and_again_after_a_while(watching: Daemon, clock: Clock) -> None:
    first = reported(watching)
    assert (len(first), set(first.values())) == (CHECKS, {True})
    assert reported(watching) == {}
    clock.go(AGAIN_SECONDS - 5)
    assert reported(watching) == {}
    clock.go(5)
    assert len(reported(watching)) == CHECKS


def test_a_stopped_connector_turns_red_without_a_run(begun: World, watching: Daemon) -> None:
    reported(watching)
    begun.connect.run(begun.flow.connector, "STOPPED")
    red = {f"shop/topic/{table}:connector_running": False for table in ("orders", "customers")}
    assert reported(watching) == red
    begun.connect.run(begun.flow.connector)
    assert reported(watching) == dict.fromkeys(red, True)


def test_what_cannot_be_asked_is_red_with_the_cause(
    begun: World, watching: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_self: object, _name: str) -> None:
        raise Unreachable("Kafka Connect at nowhere does not answer.", "Run `cdc-lake up`.")

    monkeypatch.setattr(type(begun.connect), "status", refused)
    found = watching.tick()
    assert isinstance(found, dg.SensorResult)
    [told] = {event.description for event in found.asset_events if not event.passed}  # type: ignore[union-attr]
    assert told == "Kafka Connect at nowhere does not answer. Run `cdc-lake up`."


def test_each_tick_tells_the_figures(begun: World, watching: Daemon) -> None:
    reported(watching)
    begun.order(1)
    reported(watching)
    assert [(pipeline, figures[UNLANDED]) for pipeline, figures in begun.metrics.told] == [("shop", 0), ("shop", 1)]
    assert WATERMARK_AGE in begun.metrics.told[0][1]


def test_figures_that_nobody_takes_are_no_fault_of_the_checks(
    begun: World, watching: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_pipeline: str, _figures: object) -> None:
        raise AccessRefused("Putting UnlandedOffsets of small/shop failed: AccessDenied.", "Check the credentials.")

    monkeypatch.setattr(begun.metrics, "put", refused)
    found = watching.tick()
    assert isinstance(found, dg.SensorResult)
    assert len(found.asset_events) == CHECKS
    assert found.skip_reason is not None
    assert "the figures of shop were not told: Putting UnlandedOffsets" in str(found.skip_reason.skip_message)
