"""The shop's sensors, each evaluated as Dagster's daemon does; time is turned by hand."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import dagster as dg
import pytest

from cdc_lake.pipeline.automation import dataset_refresh, health_sensor, orphaned_runs, run_requests, sensors
from cdc_lake.pipeline.checks import check_schedule
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """Dagster's state, in memory."""
    with dg.DagsterInstance.ephemeral() as made:
        yield made


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The sensors' clock."""
    made = Clock()
    for module in (sensors, run_requests, orphaned_runs, health_sensor, dataset_refresh, check_schedule):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=made.time))
    return made


@pytest.fixture
def land(shop: World, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """The orders' landing sensor: it flushes at 5 records or after 30 s."""
    return Daemon.of("shop_orders_land", shop, instance, clock)


@pytest.fixture
def apply(shop: World, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """The orders' applying sensor."""
    return Daemon.of("shop_orders_apply", shop, instance, clock)


@pytest.fixture
def connector(shop: World, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """The connector's sensor."""
    return Daemon.of("shop_connector", shop, instance, clock)


@pytest.fixture
def watching(shop: World, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """The sensor that evaluates the light checks."""
    return Daemon.of("shop_watch", shop, instance, clock)
