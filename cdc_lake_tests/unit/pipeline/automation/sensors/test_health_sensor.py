"""The health sensor evaluates the light checks between runs and reports each change of their results once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime

import dagster as dg
import pytest

from cdc_lake.contract.source.epochs import Completion, Epochs
from cdc_lake.pipeline.automation.sensors.health_sensor import (
    CONTINUOUS_CHECKS,
    INFREQUENT_EVERY_SECONDS,
    REPEAT_SECONDS,
)
from cdc_lake.pipeline.source_health import stream_continuity
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon
from resources.aws.metrics import UNLANDED, WATERMARK_AGE
from resources.errors import AccessRefused, Unreachable

WATCHED = 2 * 5  # per table: connector, slot, and the watermark of three stages
CHECKS = WATCHED + 2 * 4  # topic_contract, replica_identity_full, truncate_refused, dead_letters_empty


@pytest.fixture
def begun(shop: Shop) -> Shop:
    """The shop after its first snapshot."""
    shop.connect.put(shop.pipeline.connector, {"connector.class": "Debezium", "exactly.once.support": "required"})
    stream_continuity.begin(shop.pipeline, shop.source, shop.connect, shop.bucket)
    Epochs(shop.bucket, "shop").complete(0, Completion(snapshot_lsn=1, completed_at=datetime.now(UTC)))
    for table in shop.pipeline.tables:
        shop.land(table)
        shop.apply(table)
        shop.postgres.refuse_truncate("sales", table.name)
        shop.postgres.set_replica_identity("sales", table.name, "full")
    shop.write_heartbeat()
    assert stream_continuity.find_faults(shop.pipeline, shop.source, shop.kafka, shop.connect, shop.bucket) == ()
    return shop


def tick_results(daemon: Daemon) -> dict[str, bool]:
    """Evaluate the sensor; return the reported results by asset and check."""
    found = daemon.tick()
    assert isinstance(found, dg.SensorResult)
    assert not found.run_requests
    events = [event for event in found.asset_events if isinstance(event, dg.AssetCheckEvaluation)]
    for event in events:  # as Dagster's daemon does
        daemon.instance.report_runless_asset_event(event)
    return {f"{'/'.join(event.asset_key.path)}:{event.check_name}": event.passed for event in events}


def test_a_pipeline_that_was_never_started_reports_nothing(shop: Shop, health: Daemon) -> None:
    assert tick_results(health) == {}
    assert shop.metrics.sent == []


def test_in_continuous_mode_it_evaluates_the_checks_of_landings_too(
    begun: Shop, health: Daemon, instance: dg.DagsterInstance, clock: Clock
) -> None:
    triggered = set(tick_results(health))
    begun.pipeline = replace(begun.pipeline, spec=begun.pipeline.spec.model_copy(update={"mode": "continuous"}))
    results = tick_results(Daemon.for_sensor("shop_health", begun, instance, clock))
    assert results == {
        f"shop/raw/{table.name}_raw:{check}": True for table in begun.pipeline.tables for check in CONTINUOUS_CHECKS
    }
    assert not results.keys() & triggered


def test_passed_checks_are_reported_once_and_repeated_after_an_interval(
    begun: Shop, health: Daemon, clock: Clock
) -> None:
    first = tick_results(health)
    assert (len(first), set(first.values())) == (CHECKS, {True})
    assert tick_results(health) == {}
    clock.advance(REPEAT_SECONDS - 60)
    begun.now = clock.time()
    begun.write_heartbeat()
    assert tick_results(health) == {}
    clock.advance(60)
    assert len(tick_results(health)) == WATCHED


def test_a_stopped_connector_is_reported_without_a_run(begun: Shop, health: Daemon) -> None:
    tick_results(health)
    begun.connect.run(begun.pipeline.connector, "STOPPED")
    failed = {f"shop/topic/{table}_topic:connector_running": False for table in ("orders", "customers")}
    assert tick_results(health) == failed
    begun.connect.run(begun.pipeline.connector)
    assert tick_results(health) == dict.fromkeys(failed, True)


def drop_truncate_guard(shop: Shop) -> None:
    shop.postgres._guarded.clear()


def reset_replica_identity(shop: Shop) -> None:
    shop.postgres._full.clear()


def set_topic_compaction(shop: Shop) -> None:
    shop.kafka._topics[shop.orders.topic].config["cleanup.policy"] = "compact"


@pytest.mark.parametrize(
    ("change", "failed"),
    [
        (drop_truncate_guard, {f"shop/source/{table}_source:truncate_refused" for table in ("orders", "customers")}),
        (
            reset_replica_identity,
            {f"shop/topic/{table}_topic:replica_identity_full" for table in ("orders", "customers")},
        ),
        (set_topic_compaction, {"shop/topic/orders_topic:topic_contract"}),
    ],
)
def test_changed_settings_are_reported_without_a_run(
    begun: Shop, health: Daemon, clock: Clock, change: Callable[[Shop], None], failed: set[str]
) -> None:
    tick_results(health)
    change(begun)
    assert tick_results(health) == {}
    clock.advance(INFREQUENT_EVERY_SECONDS)
    assert tick_results(health) == dict.fromkeys(failed, False)


def test_an_outdated_result_of_a_run_is_replaced(begun: Shop, health: Daemon) -> None:
    """A run reported a failure in between; the UI must not show it until the sensor's own result changes."""
    tick_results(health)
    failed = dg.AssetCheckEvaluation(
        asset_key=begun.orders.key("topic"), check_name="slot_healthy", passed=False, metadata={}
    )
    health.instance.report_runless_asset_event(failed)
    assert tick_results(health) == {"shop/topic/orders_topic:slot_healthy": True}


def test_an_evaluation_error_does_not_replace_a_failure_about_wrong_data(
    begun: Shop, health: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    tick_results(health)
    key = begun.orders.key("topic")
    failed = dg.AssetCheckEvaluation(asset_key=key, check_name="connector_running", passed=False, metadata={})
    health.instance.report_runless_asset_event(failed)

    def refused(_self: object, _name: str) -> None:
        raise Unreachable("Kafka Connect at nowhere does not answer.", "Run `cdc-lake up`.")

    monkeypatch.setattr(type(begun.connect), "status", refused)
    results = tick_results(health)
    assert "shop/topic/orders_topic:connector_running" not in results
    assert results["shop/topic/customers_topic:connector_running"] is False


def test_a_failure_with_another_severity_is_reported(
    begun: Shop, health: Daemon, instance: dg.DagsterInstance, clock: Clock
) -> None:
    tick_results(health)
    reset_replica_identity(begun)
    warned = dg.AssetCheckEvaluation(
        asset_key=begun.orders.key("topic"),
        check_name="replica_identity_full",
        passed=False,
        severity=dg.AssetCheckSeverity.WARN,
    )
    instance.report_runless_asset_event(warned)
    clock.advance(INFREQUENT_EVERY_SECONDS)
    assert tick_results(health)["shop/topic/orders_topic:replica_identity_full"] is False


def test_checks_of_an_unreachable_system_fail_with_the_cause(
    begun: Shop, health: Daemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_self: object, _name: str) -> None:
        raise Unreachable("Kafka Connect at nowhere does not answer.", "Run `cdc-lake up`.")

    monkeypatch.setattr(type(begun.connect), "status", refused)
    found = health.tick()
    assert isinstance(found, dg.SensorResult)
    [description] = {event.description for event in found.asset_events if not event.passed}  # type: ignore[union-attr]
    assert description == "Kafka Connect at nowhere does not answer. Run `cdc-lake up`."


def test_each_tick_sends_the_metrics(begun: Shop, health: Daemon) -> None:
    tick_results(health)
    begun.order(1)
    tick_results(health)
    assert [(pipeline, figures[UNLANDED]) for pipeline, figures in begun.metrics.sent] == [("shop", 0), ("shop", 1)]
    assert WATERMARK_AGE in begun.metrics.sent[0][1]


def test_a_table_without_a_topic_is_named_and_the_others_are_measured(begun: Shop, health: Daemon) -> None:
    begun.kafka.delete_topic(begun.customers.topic)
    begun.order(1)
    found = health.tick()
    assert isinstance(found, dg.SensorResult)
    assert found.skip_reason is not None
    assert "Cannot measure table customers: Cannot read topic" in str(found.skip_reason.skip_message)
    assert begun.metrics.sent == [("shop", {UNLANDED: 1})]


def test_rejected_metrics_do_not_fail_the_checks(begun: Shop, health: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(_pipeline: str, _figures: object) -> None:
        raise AccessRefused("Putting UnlandedOffsets of small/shop failed: AccessDenied.", "Check the credentials.")

    monkeypatch.setattr(begun.metrics, "put", refused)
    found = health.tick()
    assert isinstance(found, dg.SensorResult)
    assert len(found.asset_events) == CHECKS
    assert found.skip_reason is not None
    assert "Cannot send the metrics of shop: Putting UnlandedOffsets" in str(found.skip_reason.skip_message)
