"""The light checks while nothing runs: red when the connector stands still, and reported once for each change."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

import dagster as dg
import pytest

from cdc_lake.contract.source.epochs import Completion, Epochs
from cdc_lake.pipeline.automation.health_sensor import REPEAT_SECONDS, SETTINGS_EVERY_SECONDS
from cdc_lake.pipeline.source_health import stream_continuity
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon
from resources.aws.metrics import UNLANDED, WATERMARK_AGE
from resources.errors import AccessRefused, Unreachable

WATCHED = 2 * 5  # of each table: connector and slot, and the watermark of three stages
CHECKS = WATCHED + 2 * 4  # and topic_contract, replica_identity_full, truncate_refused, dead_letters_empty


@pytest.fixture
def begun(shop: World) -> World:
    """The shop after its first snapshot."""
    shop.connect.put(shop.flow.connector, {"connector.class": "Debezium", "exactly.once.support": "required"})
    stream_continuity.begin(shop.flow, shop.postgres, shop.connect, shop.bucket)
    Epochs(shop.bucket, "shop").complete(0, Completion(snapshot_lsn=1, completed_at=datetime.now(UTC)))
    for table in shop.flow.tables:
        shop.land(table)
        shop.apply(table)
        shop.postgres.refuse_truncate("sales", table.name)
        shop.postgres.set_replica_identity("sales", table.name, "full")
    shop.beat()
    return shop


def reported(daemon: Daemon) -> dict[str, bool]:
    """What a tick reports: whether it passed, by asset and check."""
    found = daemon.tick()
    assert isinstance(found, dg.SensorResult)
    assert not found.run_requests
    events = [event for event in found.asset_events if isinstance(event, dg.AssetCheckEvaluation)]
    for event in events:  # as Dagster's daemon does
        daemon.instance.report_runless_asset_event(event)
    return {f"{'/'.join(event.asset_key.path)}:{event.check_name}": event.passed for event in events}


def test_a_pipeline_that_has_not_begun_is_left_alone(shop: World, watching: Daemon) -> None:
    assert reported(watching) == {}
    assert shop.metrics.told == []


def test_green_is_reported_once_and_again_after_a_while(begun: World, watching: Daemon, clock: Clock) -> None:
    first = reported(watching)
    assert (len(first), set(first.values())) == (CHECKS, {True})
    assert reported(watching) == {}
    clock.go(REPEAT_SECONDS - 60)
    begun.now = clock.time()
    begun.beat()
    assert reported(watching) == {}
    clock.go(60)
    assert len(reported(watching)) == WATCHED


def test_a_stopped_connector_turns_red_without_a_run(begun: World, watching: Daemon) -> None:
    reported(watching)
    begun.connect.run(begun.flow.connector, "STOPPED")
    red = {f"shop/topic/{table}:connector_running": False for table in ("orders", "customers")}
    assert reported(watching) == red
    begun.connect.run(begun.flow.connector)
    assert reported(watching) == dict.fromkeys(red, True)


def refuse_no_truncate(shop: World) -> None:
    shop.postgres._guarded.clear()


def keep_no_whole_rows(shop: World) -> None:
    shop.postgres._full.clear()


def compact_the_topic(shop: World) -> None:
    shop.kafka._topics[shop.orders.topic].config["cleanup.policy"] = "compact"


@pytest.mark.parametrize(
    ("change", "red"),
    [
        (refuse_no_truncate, {f"shop/source/{table}:truncate_refused" for table in ("orders", "customers")}),
        (keep_no_whole_rows, {f"shop/topic/{table}:replica_identity_full" for table in ("orders", "customers")}),
        (compact_the_topic, {"shop/topic/orders:topic_contract"}),
    ],
)
def test_what_only_a_person_changes_turns_red_in_steady_state(
    begun: World, watching: Daemon, clock: Clock, change: Callable[[World], None], red: set[str]
) -> None:
    reported(watching)
    change(begun)
    assert reported(watching) == {}
    clock.go(SETTINGS_EVERY_SECONDS)
    assert reported(watching) == dict.fromkeys(red, False)


def test_a_result_of_a_run_that_is_over_is_replaced(begun: World, watching: Daemon) -> None:
    """A run found it red in between: the UI must not show that until the sensor's own result changes."""
    reported(watching)
    red = dg.AssetCheckEvaluation(
        asset_key=begun.orders.key("topic"), check_name="slot_healthy", passed=False, metadata={}
    )
    watching.instance.report_runless_asset_event(red)
    assert reported(watching) == {"shop/topic/orders:slot_healthy": True}


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
    assert "Cannot send the metrics of shop: Putting UnlandedOffsets" in str(found.skip_reason.skip_message)
