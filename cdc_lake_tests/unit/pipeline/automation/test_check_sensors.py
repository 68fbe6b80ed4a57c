"""The sensor that launches the checks of whole tables in the interval of `checks.verify_every`."""

from __future__ import annotations

from dataclasses import replace

import dagster as dg
import pytest

from cdc_lake.pipeline import checks as pipeline_checks
from cdc_lake.pipeline.automation import check_sensors
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.checks import tiers
from cdc_lake.pipeline.spec.monitoring import ChecksSpec
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon

SIX_HOURS = 6 * 3600


@pytest.fixture
def schedule(shop: Shop, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """The sensor that launches the scheduled checks; all lake tables are materialised."""
    for table in shop.pipeline.tables:
        instance.report_runless_asset_event(dg.AssetMaterialization(table.key("lake"), metadata={"instant": "none"}))
    return Daemon.for_sensor("shop_checks", shop, instance, clock)


def test_the_default_interval_is_six_hours_since_the_last_run(schedule: Daemon, clock: Clock) -> None:
    schedule.run(dg.DagsterRunStatus.SUCCESS)
    assert schedule.skip().startswith("the next run is in 21")
    clock.advance(SIX_HOURS - 60)
    assert schedule.skip().startswith("the next run is in ")
    clock.advance(61)
    schedule.run(dg.DagsterRunStatus.SUCCESS)


def test_several_missed_intervals_launch_one_run(schedule: Daemon, clock: Clock) -> None:
    schedule.run(dg.DagsterRunStatus.SUCCESS)
    clock.advance(10 * SIX_HOURS)
    run = schedule.run()
    assert schedule.skip() == f"run {run.run_id} of this sensor is active"


def test_a_failed_run_is_retried(schedule: Daemon, clock: Clock) -> None:
    schedule.fail()
    assert "the next run is in 5 s" in schedule.skip()
    clock.advance(6)
    schedule.run(dg.DagsterRunStatus.SUCCESS)
    assert schedule.skip().startswith("the next run is in 21")


def test_the_run_selects_checks_and_no_assets(shop: Shop, schedule: Daemon) -> None:
    request = schedule.request()
    assert (request.job_name, request.asset_selection) == ("shop_checks", ())
    assert {f"{'/'.join(key.asset_key.path[1:])}:{key.name}" for key in request.asset_check_keys or ()} == {
        "source/orders_source:orders_have_customers",
        "dataset/totals:totals_equal_source",
        *(f"lake/{table.name}_lake:{name}" for table in shop.pipeline.tables for name in LAKE_CHECKS),
    }


LAKE_CHECKS = ("equals_source", "keys_unique", "file_sizes_healthy")


def test_nothing_is_launched_before_lake_tables_are_materialised(
    shop: Shop, instance: dg.DagsterInstance, clock: Clock
) -> None:
    found = Daemon.for_sensor("shop_checks", shop, instance, clock)
    assert found.skip() == "lake tables not materialised yet: orders, customers"


def test_a_table_without_a_first_load_does_not_stop_the_checks_of_the_others(
    shop: Shop, instance: dg.DagsterInstance, clock: Clock
) -> None:
    loaded, other = shop.orders.key("lake"), shop.customers.key("lake")
    instance.report_runless_asset_event(dg.AssetMaterialization(loaded, metadata={"instant": "none"}))
    request = Daemon.for_sensor("shop_checks", shop, instance, clock).request()
    checked = {key.asset_key for key in request.asset_check_keys or ()}
    assert loaded in checked
    assert other not in checked


def test_a_check_that_cannot_be_evaluated_does_not_read_all_tables_every_five_minutes(
    schedule: Daemon, clock: Clock
) -> None:
    for pause in (5, 15, 60):
        schedule.fail()
        clock.advance(pause + 1)
    schedule.fail()
    clock.advance(SIX_HOURS - 60)
    assert "the next run is in " in schedule.skip()
    clock.advance(61)
    schedule.request()


A_DAY = "every 86400 s"


@pytest.mark.parametrize(
    ("verify_every", "intervals"),
    [("off", [A_DAY]), ("hourly", ["every 3600 s", A_DAY]), ("45m", ["every 2700 s", A_DAY])],
)
def test_the_interval_comes_from_the_yaml(shop: Shop, verify_every: str, intervals: list[str]) -> None:
    pipeline = replace(
        shop.pipeline, spec=shop.pipeline.spec.model_copy(update={"checks": ChecksSpec(verify_every=verify_every)})
    )
    checks = pipeline_checks.build(pipeline)
    found = check_sensors.build(pipeline, Jobs(pipeline, checks))
    assert [
        interval for sensor, interval in zip(found, intervals, strict=True) if interval in (sensor.description or "")
    ] == intervals


def test_daily_checks_run_once_a_day(shop: Shop) -> None:
    @dg.asset_check(asset=shop.orders.key("raw"), metadata=tiers.DAILY)
    def manifests_whole() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True)

    [sensor] = check_sensors.build(shop.pipeline, Jobs(shop.pipeline, [manifests_whole]))
    assert (sensor.name, sensor.description) == ("shop_daily_checks", "Runs manifests_whole every 86400 s.")
