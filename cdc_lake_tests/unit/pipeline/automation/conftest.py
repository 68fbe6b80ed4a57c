"""Fixtures of the shop's sensors, evaluated as Dagster's daemon does."""

from __future__ import annotations

import dagster as dg
import pytest

from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon


@pytest.fixture
def land(shop: Shop, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """The orders' landing sensor; it flushes at 5 records or after 30 s."""
    return Daemon.for_sensor("shop_land", shop, instance, clock)


@pytest.fixture
def apply(shop: Shop, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """The orders' apply sensor."""
    return Daemon.for_sensor("shop_apply", shop, instance, clock)


@pytest.fixture
def connector(shop: Shop, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """The connector sensor."""
    return Daemon.for_sensor("shop_connector", shop, instance, clock)


@pytest.fixture
def health(shop: Shop, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """The health sensor, which evaluates the light checks."""
    return Daemon.for_sensor("shop_health", shop, instance, clock)
