"""`cdc-lake run`: what it prints and stores, how a signal ends it, and where it is refused."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import dagster as dg
import pytest
from typer.testing import CliRunner

from cdc_lake import instance, profile
from cdc_lake.cli.app import app
from cdc_lake.pipeline.continuous import run
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from resources.object_store import ObjectStore
from resources.spark.local import LocalSpark

BOUND = 30.0


@pytest.fixture
def dagster(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> dg.DagsterInstance:
    """The instance that the command reports to."""
    found = dg.DagsterInstance.local_temp(str(tmp_path))
    monkeypatch.setattr(instance, "instance", lambda: found)
    return found


@pytest.fixture
def _signals() -> object:
    """Restore the handlers that the command replaces."""
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.usefixtures("_signals")
def test_reports_are_stored_and_printed_until_a_signal(
    commands: Shop, monkeypatch: pytest.MonkeyPatch, dagster: dg.DagsterInstance
) -> None:
    shop, seen = commands, []

    def running(pipeline: object, _systems: object, report: run.Report, stop: threading.Event, seconds: float) -> None:
        seen.append((pipeline, seconds))
        report(dg.AssetMaterialization(shop.orders.key("lake"), metadata={"changes": "2 commits up to 7: 9 events"}))
        report(dg.AssetObservation(shop.orders.key("raw"), metadata={"error": "no topic"}))
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.wait(BOUND)
        # The next signal of either kind ends the process.
        assert {signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)} == {signal.SIG_DFL}

    monkeypatch.setattr(run, "run", running)
    spark = LocalSpark(java_home="", jars="", properties=[], store=ObjectStore(bucket="shop"))
    monkeypatch.setattr(profile, "spark", lambda: spark)
    result = CliRunner().invoke(app, ["run", "shop", "--report", "7"], catch_exceptions=False)
    assert result.stdout == (
        "Starting pipeline shop. Press Ctrl-C to stop it.\n"
        "shop/lake/orders_lake: 2 commits up to 7: 9 events\n"
        "shop/raw/orders_raw: no topic\n"
    )
    assert seen == [(shop.pipeline, 7)]
    stored = dagster.get_latest_materialization_event(shop.orders.key("lake"))
    assert stored is not None
