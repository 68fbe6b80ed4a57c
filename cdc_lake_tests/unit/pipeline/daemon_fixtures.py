"""Fixtures of Dagster's daemon: an instance in memory, and a clock that the test sets."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace

import dagster as dg
import pytest

from cdc_lake.pipeline.automation import check_sensors, dataset_refresh, orphaned_runs, run_requests
from cdc_lake.pipeline.automation.sensors import connector_sensor, flush_rule, health_sensor
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    """A Dagster instance in memory."""
    with dg.DagsterInstance.ephemeral() as ephemeral:
        yield ephemeral


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The clock of all sensors."""
    fake_clock = Clock()
    for module in (
        flush_rule,
        connector_sensor,
        run_requests,
        orphaned_runs,
        health_sensor,
        dataset_refresh,
        check_sensors,
    ):
        monkeypatch.setattr(module, "time", SimpleNamespace(time=fake_clock.time))
    return fake_clock
