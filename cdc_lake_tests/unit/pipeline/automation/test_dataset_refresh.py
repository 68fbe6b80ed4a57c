"""The sensor of datasets and dashboards: one run after the lake changed, none over a table known to be wrong."""

from __future__ import annotations

from dataclasses import replace

import dagster as dg
import pytest
import yaml

from cdc_lake.pipeline import component, table_progress
from cdc_lake.pipeline.automation import dataset_refresh
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.unit.pipeline.assets.test_dashboard import SALES
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon, orders


@pytest.fixture
def following(shop: World, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """The shop's refresh sensor; the orders' table has a commit, the customers' has none."""
    committed(shop, 100)
    return Daemon.of("shop_refresh", shop, instance, clock)


def built(shop: World, instance: dg.DagsterInstance, *names: str) -> None:
    """These datasets are built over the newest commits, as their stage reports it."""
    commits = dg.MetadataValue.json(table_progress.lake_commits(shop.bucket, shop.flow))
    for name in names or ("totals", "countries"):
        key = shop.flow.key("dataset", name)
        instance.report_runless_asset_event(dg.AssetMaterialization(key, metadata={dataset_refresh.COMMITS: commits}))


def committed(shop: World, number: int) -> None:
    """The lake table of the orders has one more commit."""
    orders(shop, 1, first=number)
    shop.land(shop.orders)
    shop.apply(shop.orders)


def checked(instance: dg.DagsterInstance, key: dg.AssetKey, name: str, *, passed: bool) -> None:
    """A check is evaluated, by whichever run or sensor."""
    instance.report_runless_asset_event(dg.AssetCheckEvaluation(asset_key=key, check_name=name, passed=passed))


def test_a_commit_launches_one_run_of_all_that_follows(
    shop: World, following: Daemon, instance: dg.DagsterInstance
) -> None:
    request = following.request()
    assert request.job_name == "shop_refresh"
    assert request.asset_selection == (shop.flow.key("dataset", "totals"), shop.flow.key("dataset", "countries"))
    assert request.asset_check_keys == ()
    built(shop, instance)
    assert following.skip() == "datasets and dashboards are built over the newest commits"
    committed(shop, 1)
    following.request()


def test_commits_during_a_run_are_left_to_the_next_one(
    shop: World, following: Daemon, instance: dg.DagsterInstance
) -> None:
    """However many commits there are, one run at a time and one after it."""
    built(shop, instance)
    committed(shop, 1)
    run = following.run()
    built(shop, instance)
    for number in (2, 3):
        committed(shop, number)
        assert following.skip() == f"run {run.run_id} of this sensor is active"
    instance.report_run_canceling(run)
    instance.report_run_canceled(run)
    following.run()
    built(shop, instance)
    assert following.skip() == "datasets and dashboards are built over the newest commits"


def test_a_run_that_built_some_of_them_only_is_launched_again(
    shop: World, following: Daemon, instance: dg.DagsterInstance, clock: Clock
) -> None:
    following.fail()
    built(shop, instance, "totals")
    assert "the next one in 5 s" in following.skip()
    clock.go(6)
    following.request()


def test_a_table_that_is_known_to_be_wrong_is_left_alone(
    shop: World, following: Daemon, instance: dg.DagsterInstance
) -> None:
    lake = shop.orders.key("lake")
    checked(instance, lake, "equals_source", passed=False)
    assert following.skip().startswith("not built: check equals_source of shop/lake/orders failed at ")
    checked(instance, lake, "equals_source", passed=True)
    following.request()


def test_a_dataset_that_is_known_to_be_wrong_is_built_again_and_its_dashboards_are_not(
    shop: World, instance: dg.DagsterInstance, clock: Clock
) -> None:
    (shop.flow.folder / "sales.yaml").write_text(yaml.safe_dump(SALES))
    shop.flow = replace(shop.flow, spec=shop.flow.spec.model_copy(update={"dashboards": ["sales.yaml"]}))
    committed(shop, 100)
    daemon = Daemon.of("shop_refresh", shop, instance, clock)
    checked(instance, shop.flow.key("dataset", "totals"), "totals_equal_source", passed=False)
    datasets = (shop.flow.key("dataset", "countries"), shop.flow.key("dataset", "totals"))
    assert daemon.request().asset_selection == datasets
    built(shop, instance)
    said = daemon.skip()
    assert said.startswith("not built: check totals_equal_source of shop/dataset/totals failed at ")


def test_a_table_that_is_late_is_not_wrong(shop: World, following: Daemon, instance: dg.DagsterInstance) -> None:
    checked(instance, shop.orders.key("lake"), "watermark_fresh", passed=False)
    checked(instance, shop.orders.key("topic"), "connector_running", passed=False)
    following.request()


def test_before_the_first_commit_nothing_is_built(shop: World, following: Daemon) -> None:
    shop.bucket.delete([item.key for item in shop.bucket.scan(shop.orders.lake_prefix)])
    assert following.skip() == "nothing is applied to a lake table yet"


def test_a_pipeline_without_datasets_has_no_sensor_of_them(shop: World) -> None:
    flow = replace(shop.flow, spec=shop.flow.spec.model_copy(update={"datasets": []}))
    assert "shop_refresh" not in {sensor.name for sensor in component.build(flow).sensors or ()}
