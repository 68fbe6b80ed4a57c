"""The connector's sensor: what it restarts, how long it waits in between, and what it says."""

from __future__ import annotations

import dagster as dg

from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon


def test_no_connector(shop: World, connector: Daemon) -> None:
    shop.connect.delete(shop.flow.connector)
    assert connector.skip() == "there is no connector cdc-lake-shop yet"


def test_a_connector_that_runs_is_left_alone(shop: World, connector: Daemon) -> None:
    assert connector.skip() == "cdc-lake-shop is RUNNING, no task has failed"
    shop.connect.run(shop.flow.connector, "PAUSED")
    assert connector.skip() == "cdc-lake-shop is PAUSED, no task has failed"
    assert shop.connect.restarts == []


def test_a_failed_task_is_restarted_and_it_says_so(shop: World, connector: Daemon) -> None:
    shop.connect.fail(shop.flow.connector, "connection refused")
    said = connector.skip()
    assert said == (
        "restarted tasks [0] of cdc-lake-shop (task failed: connection refused); next restart in 5 s at the earliest"
    )
    assert shop.connect.restarts == ["cdc-lake-shop"]


def test_a_failed_connector_is_restarted_too(shop: World, connector: Daemon) -> None:
    shop.connect.fail(shop.flow.connector, "no such host", connector_too=True)
    assert connector.skip().startswith("restarted cdc-lake-shop (cdc-lake-shop is FAILED: no such host")


def test_a_failed_connector_that_nobody_can_restart_is_made_anew_by_a_run(
    shop: World, connector: Daemon, clock: Clock
) -> None:
    """On MSK Connect, the run of the topic deletes it and makes it again under its name."""
    shop.connect.restart_running_only()
    shop.connect.fail(shop.flow.connector, "no such host", connector_too=True)
    connector.run(dg.DagsterRunStatus.SUCCESS)
    assert "next restart in" in connector.skip()
    clock.go(6)
    connector.request()
    assert shop.connect.restarts == []
    shop.connect.fail(shop.flow.connector, "connection refused")
    clock.go(16)
    assert connector.skip().startswith("restarted tasks [0]")


def test_restarts_wait_longer_each_time(shop: World, connector: Daemon, clock: Clock) -> None:
    shop.connect.fail(shop.flow.connector, "connection refused")
    for count, pause in enumerate((5, 15, 60, 300, 300), 1):
        connector.skip()
        assert len(shop.connect.restarts) == count
        clock.go(pause - 0.5)
        assert "next restart in" in connector.skip()
        assert len(shop.connect.restarts) == count
        clock.go(1)


def test_a_task_that_fails_soon_after_its_restart_is_waited_with(shop: World, connector: Daemon, clock: Clock) -> None:
    name = shop.flow.connector
    shop.connect.fail(name, "connection refused")
    connector.skip()
    shop.connect.run(name)
    clock.go(20)
    connector.skip()
    shop.connect.fail(name, "connection refused")
    assert "next restart in 15 s at the earliest" in connector.skip()


def test_the_pauses_start_over_after_five_minutes_of_running(shop: World, connector: Daemon, clock: Clock) -> None:
    name = shop.flow.connector
    shop.connect.fail(name, "connection refused")
    connector.skip()
    clock.go(6)
    connector.skip()
    shop.connect.run(name)
    clock.go(301)
    connector.skip()
    shop.connect.fail(name, "connection refused")
    assert "next restart in 5 s at the earliest" in connector.skip()
