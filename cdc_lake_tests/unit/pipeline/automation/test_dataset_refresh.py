"""The refresh sensor launches one run of datasets and dashboards after commits, unless a check of a table failed."""

from __future__ import annotations

import time
from dataclasses import replace

import dagster as dg
import pytest
import yaml

from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.pipeline import component, table_progress
from cdc_lake.pipeline.assets.refined_table import RETENTION_SECONDS
from cdc_lake.pipeline.assets.standard_metadata import LAKE_COMMITS
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon, orders
from cdc_lake_tests.unit.pipeline.sales_dashboard import SALES


@pytest.fixture
def refresh(shop: Shop, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """The shop's refresh sensor; the orders' table has one commit, the customers' table has no commit."""
    add_commit(shop, 100)
    return Daemon.for_sensor("shop_refresh", shop, instance, clock)


def report_built(shop: Shop, instance: dg.DagsterInstance, *names: str) -> None:
    """Report these datasets, or all, as built from the newest commits."""
    commits = dg.MetadataValue.json(table_progress.lake_commits(shop.bucket, shop.pipeline))
    for name in names or ("totals", "countries"):
        key = shop.pipeline.key("dataset", name)
        instance.report_runless_asset_event(dg.AssetMaterialization(key, metadata={LAKE_COMMITS: commits}))


def add_commit(shop: Shop, number: int) -> None:
    """Add a commit to the lake table of the orders."""
    orders(shop, 1, first=number)
    shop.land(shop.orders)
    shop.apply(shop.orders)


def report_check(instance: dg.DagsterInstance, key: dg.AssetKey, name: str, *, passed: bool) -> None:
    """Report the evaluation of a check."""
    instance.report_runless_asset_event(dg.AssetCheckEvaluation(asset_key=key, check_name=name, passed=passed))


def test_a_commit_launches_one_run_of_all_datasets(shop: Shop, refresh: Daemon, instance: dg.DagsterInstance) -> None:
    request = refresh.request()
    assert request.job_name == "shop_refresh"
    assert request.asset_selection == (
        shop.pipeline.key("dataset", "totals"),
        shop.pipeline.key("dataset", "countries"),
    )
    assert request.asset_check_keys == ()
    report_built(shop, instance)
    assert refresh.skip() == "datasets and dashboards are built over the newest commits"
    add_commit(shop, 1)
    refresh.request()


def test_commits_during_a_run_launch_one_further_run(
    shop: Shop, refresh: Daemon, instance: dg.DagsterInstance, clock: Clock
) -> None:
    report_built(shop, instance)
    add_commit(shop, 1)
    run = refresh.run()
    report_built(shop, instance)
    for number in (2, 3):
        add_commit(shop, number)
        assert refresh.skip() == f"run {run.run_id} of this sensor is active"
    instance.report_run_canceling(run)
    instance.report_run_canceled(run)
    clock.advance(6)
    refresh.run()
    report_built(shop, instance)
    assert refresh.skip() == "datasets and dashboards are built over the newest commits"


def test_a_run_that_built_only_some_datasets_is_retried(
    shop: Shop, refresh: Daemon, instance: dg.DagsterInstance, clock: Clock
) -> None:
    refresh.fail()
    report_built(shop, instance, "totals")
    assert "the next run is in 5 s" in refresh.skip()
    clock.advance(6)
    refresh.request()


def test_the_pauses_after_failures_grow_while_the_tables_change(shop: Shop, refresh: Daemon, clock: Clock) -> None:
    for number, pause in enumerate((5, 15, 60, 300, 300), start=2):
        refresh.fail()
        add_commit(shop, number)
        assert f"the next run is in {pause} s" in refresh.skip()
        clock.advance(pause)
    refresh.run(dg.DagsterRunStatus.SUCCESS)
    add_commit(shop, 7)
    refresh.fail()
    assert "the next run is in 5 s" in refresh.skip()


def test_nothing_is_built_from_a_table_with_a_failed_check(
    shop: Shop, refresh: Daemon, instance: dg.DagsterInstance
) -> None:
    lake = shop.orders.key("lake")
    report_check(instance, lake, "equals_source", passed=False)
    assert refresh.skip().startswith("not built: check equals_source of shop/lake/orders_lake failed at ")
    report_check(instance, lake, "equals_source", passed=True)
    refresh.request()


def test_a_dataset_with_a_failed_check_is_rebuilt_but_its_dashboards_are_not(
    shop: Shop, instance: dg.DagsterInstance, clock: Clock
) -> None:
    (shop.pipeline.folder / "sales.yaml").write_text(yaml.safe_dump(SALES))
    shop.pipeline = replace(shop.pipeline, spec=shop.pipeline.spec.model_copy(update={"dashboards": ["sales.yaml"]}))
    add_commit(shop, 100)
    daemon = Daemon.for_sensor("shop_refresh", shop, instance, clock)
    report_check(instance, shop.pipeline.key("dataset", "totals"), "totals_equal_source", passed=False)
    datasets = (shop.pipeline.key("dataset", "countries"), shop.pipeline.key("dataset", "totals"))
    assert daemon.request().asset_selection == datasets
    report_built(shop, instance)
    message = daemon.skip()
    assert message.startswith("not built: check totals_equal_source of shop/dataset/totals failed at ")


def test_failed_lateness_checks_do_not_block_the_refresh(
    shop: Shop, refresh: Daemon, instance: dg.DagsterInstance
) -> None:
    report_check(instance, shop.orders.key("lake"), "watermark_fresh", passed=False)
    report_check(instance, shop.orders.key("topic"), "connector_running", passed=False)
    refresh.request()


def test_a_replaced_build_is_deleted_an_hour_later_without_a_new_commit(
    shop: Shop, refresh: Daemon, instance: dg.DagsterInstance
) -> None:
    report_built(shop, instance)
    key = object_names.stage_state_key("shop", "dataset", "totals")
    stage_state.write(shop.bucket, key, {"build": "new", "seen": {"replaced": time.time() - RETENTION_SECONDS + 60}})
    assert refresh.skip() == "datasets and dashboards are built over the newest commits"
    stage_state.write(shop.bucket, key, {"build": "new", "seen": {"replaced": time.time() - RETENTION_SECONDS}})
    request = refresh.request()
    assert request.asset_selection == (shop.pipeline.key("dataset", "totals"),)
    stage_state.write(shop.bucket, key, {"build": "new", "seen": {}})
    assert refresh.skip() == "datasets and dashboards are built over the newest commits"


def test_a_dataset_that_is_added_without_a_new_commit_gets_another_run_key(
    shop: Shop, refresh: Daemon, instance: dg.DagsterInstance, clock: Clock
) -> None:
    spec = shop.pipeline.spec.model_copy(update={"datasets": shop.pipeline.spec.datasets[:1]})
    sensors = {sensor.name: sensor for sensor in component.build(replace(shop.pipeline, spec=spec)).sensors or ()}
    of_one = Daemon(shop, sensors["shop_refresh"], instance, clock)
    assert of_one.request().run_key != refresh.request().run_key


def test_before_the_first_commit_nothing_is_built(shop: Shop, refresh: Daemon) -> None:
    shop.bucket.delete([item.key for item in shop.bucket.scan(shop.orders.lake_prefix)])
    assert refresh.skip() == "nothing is applied to a lake table yet"


def test_a_pipeline_without_datasets_has_no_refresh_sensor(shop: Shop) -> None:
    pipeline = replace(shop.pipeline, spec=shop.pipeline.spec.model_copy(update={"datasets": []}))
    assert "shop_refresh" not in {sensor.name for sensor in component.build(pipeline).sensors or ()}
