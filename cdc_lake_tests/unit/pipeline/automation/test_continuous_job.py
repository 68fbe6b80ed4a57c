"""A pipeline in continuous mode: its sensor keeps one run active, and its job runs the loops."""

from __future__ import annotations

import threading
from contextlib import nullcontext
from pathlib import Path

import dagster as dg
import pytest

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.table import lease
from cdc_lake.pipeline import component
from cdc_lake.pipeline.automation import continuous_job
from cdc_lake.pipeline.continuous import run as continuous
from cdc_lake.pipeline.loading import MODE_VARIABLE, load
from cdc_lake_tests.fakes.dagster import QUIET, fake_resources
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.fakes.shop.shop_pipeline import YAML, write_shop
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon
from cdc_lake_tests.unit.pipeline.stage_runner import Runner


@pytest.fixture
def endless(shop: Shop, tmp_path: Path) -> Shop:
    """The shop in continuous mode."""
    write_shop(tmp_path / "endless", YAML.replace("  targets:", "  mode: continuous\n  targets:"))
    shop.pipeline = load("shop", tmp_path / "endless")
    assert shop.pipeline.spec.mode == "continuous"
    return shop


@pytest.fixture
def daemon(endless: Shop, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    return Daemon.for_sensor("shop_run", endless, instance, clock)


def test_one_run_replaces_the_sensors_that_launch_a_run_for_each_batch(endless: Shop) -> None:
    built = component.build(endless.pipeline)
    names = {each.name for each in built.sensors or ()}
    assert "shop_run" in names
    assert not names & {"shop_land", "shop_apply"}
    [refresh] = [each for each in built.sensors or () if each.name == "shop_refresh"]
    assert isinstance(refresh, dg.SensorDefinition)
    assert refresh.minimum_interval_seconds == 60


def test_a_run_takes_no_place_in_a_pool(endless: Shop) -> None:
    """It never ends, so that two of them would hold up all other runs of the pool."""
    [job] = continuous_job.jobs(endless.pipeline)
    assert [node.pools for node in job.graph.node_defs] == [set()]


def test_a_run_is_kept_active(endless: Shop, daemon: Daemon, clock: Clock) -> None:
    for name in endless.kafka.topics():
        endless.kafka.delete_topic(name)
    endless.connect.delete(endless.pipeline.connector)
    endless.postgres.drop_slot(endless.pipeline.slot)
    endless.bucket.objects.clear()
    assert daemon.skip() == "pipeline shop has not started: materialise its topics first"
    with dg.DagsterInstance.ephemeral() as other:
        Runner(endless, other)("source", "topic")
    run = daemon.run()
    assert int(run.tags["dagster/max_runtime"]) > 86_400
    assert daemon.skip() == f"run {run.run_id} of this sensor is active"
    daemon.instance.report_run_failed(run)
    assert "the next run is in 5 s" in daemon.skip()
    clock.advance(6)
    assert daemon.request().job_name == "shop_run"


def test_no_run_is_started_beside_another_process(endless: Shop, daemon: Daemon, clock: Clock) -> None:
    Runner(endless, daemon.instance)("source", "topic")
    key = object_names.continuous_lease_key("shop")
    with lease.held(endless.bucket, key, "cdc-lake run shop, process 1 on here"):
        assert daemon.skip() == "cdc-lake run shop, process 1 on here runs the pipeline"
    run = daemon.run()
    with lease.held(endless.bucket, key, f"dagster run {run.run_id}"):
        assert daemon.skip() == f"dagster run {run.run_id} runs the pipeline"
        daemon.instance.report_run_failed(run)
        clock.advance(6)
        daemon.request()  # the next run waits until the lease of the killed one has expired


def test_the_pauses_after_failures_grow_to_a_minute(endless: Shop, daemon: Daemon, clock: Clock) -> None:
    Runner(endless, daemon.instance)("source", "topic")
    for pause in (5, 15, 60, 60):
        daemon.fail()
        assert f"the next run is in {pause} s" in daemon.skip()
        clock.advance(pause)


def test_the_job_runs_the_loops_and_reports_to_its_instance(endless: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[object] = []

    def running(pipeline: object, systems: object, report: continuous.Report, stop: threading.Event) -> None:
        seen.extend((pipeline, systems, stop.is_set()))
        report(dg.AssetMaterialization(endless.orders.key("lake"), metadata={"commits": 3}))

    monkeypatch.setattr(continuous, "run", running)
    monkeypatch.setattr(continuous, "systems", lambda *given: nullcontext(given[-1]))
    built = component.build(endless.pipeline)
    definitions = dg.Definitions(
        jobs=built.jobs,
        assets=built.assets,
        asset_checks=built.asset_checks,
        resources=fake_resources(**endless.resources),
    )
    with dg.DagsterInstance.ephemeral() as instance:
        result = definitions.resolve_job_def("shop_run").execute_in_process(instance=instance, run_config=QUIET)
        assert result.success
        assert instance.get_latest_materialization_event(endless.orders.key("lake")) is not None
    assert seen == [endless.pipeline, f"dagster run {result.run_id}", False]


def test_the_environment_replaces_the_mode(endless: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(MODE_VARIABLE, "triggered")
    assert load("shop", endless.pipeline.folder.parent).spec.mode == "triggered"
    monkeypatch.setenv(MODE_VARIABLE, "fast")
    with pytest.raises(ContractError, match=r"CDC_LAKE_MODE is 'fast'\. Set it to triggered or continuous"):
        load("shop", endless.pipeline.folder.parent)
