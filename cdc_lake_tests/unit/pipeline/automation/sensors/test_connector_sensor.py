"""The connector sensor: what it restarts, its pauses and its messages."""

from __future__ import annotations

import dagster as dg

from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon


def test_a_missing_connector_is_skipped(shop: Shop, connector: Daemon) -> None:
    shop.connect.delete(shop.pipeline.connector)
    assert connector.skip() == "there is no connector cdc-lake-shop yet"


def test_a_connector_without_failed_tasks_is_not_restarted(shop: Shop, connector: Daemon) -> None:
    assert connector.skip() == "cdc-lake-shop is RUNNING, no task has failed"
    shop.connect.run(shop.pipeline.connector, "PAUSED")
    assert connector.skip() == "cdc-lake-shop is PAUSED, no task has failed"
    assert shop.connect.restarts == []


def test_a_failed_task_is_restarted_and_reported(shop: Shop, connector: Daemon) -> None:
    shop.connect.fail(shop.pipeline.connector, "connection refused")
    message = connector.skip()
    assert message == (
        "restarted task 0 of cdc-lake-shop (task failed: connection refused); next restart in 5 s at the earliest"
    )
    assert shop.connect.restarts == ["cdc-lake-shop"]


def test_a_failed_connector_is_restarted(shop: Shop, connector: Daemon) -> None:
    shop.connect.fail(shop.pipeline.connector, "no such host", connector_too=True)
    assert connector.skip().startswith("restarted cdc-lake-shop (cdc-lake-shop is FAILED: no such host")


def test_a_failed_connector_without_restart_support_is_recreated_by_a_run(
    shop: Shop, connector: Daemon, clock: Clock
) -> None:
    """On MSK Connect, the run of the topic asset deletes and re-creates the connector under its name."""
    shop.connect.restart_running_only()
    shop.connect.fail(shop.pipeline.connector, "no such host", connector_too=True)
    connector.run(dg.DagsterRunStatus.SUCCESS)
    assert "next restart in" in connector.skip()
    clock.advance(6)
    connector.request()
    assert shop.connect.restarts == []
    shop.connect.fail(shop.pipeline.connector, "connection refused")
    clock.advance(16)
    assert connector.skip().startswith("restarted task 0")


def test_pauses_between_restarts_grow(shop: Shop, connector: Daemon, clock: Clock) -> None:
    shop.connect.fail(shop.pipeline.connector, "connection refused")
    for count, pause in enumerate((5, 15, 60, 300, 300), 1):
        connector.skip()
        assert len(shop.connect.restarts) == count
        clock.advance(pause - 0.5)
        assert "next restart in" in connector.skip()
        assert len(shop.connect.restarts) == count
        clock.advance(1)


def test_the_pause_grows_for_a_task_that_fails_soon_after_its_restart(
    shop: Shop, connector: Daemon, clock: Clock
) -> None:
    name = shop.pipeline.connector
    shop.connect.fail(name, "connection refused")
    connector.skip()
    shop.connect.run(name)
    clock.advance(20)
    connector.skip()
    shop.connect.fail(name, "connection refused")
    assert "next restart in 15 s at the earliest" in connector.skip()


def test_the_pauses_are_reset_after_five_minutes_without_failure(shop: Shop, connector: Daemon, clock: Clock) -> None:
    name = shop.pipeline.connector
    shop.connect.fail(name, "connection refused")
    connector.skip()
    clock.advance(6)
    connector.skip()
    shop.connect.run(name)
    clock.advance(301)
    connector.skip()
    shop.connect.fail(name, "connection refused")
    assert "next restart in 5 s at the earliest" in connector.skip()
