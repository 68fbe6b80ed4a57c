"""The schedule of the checks that read whole tables: every so often, on its own, and not at all where that is off."""

from __future__ import annotations

from dataclasses import replace

import dagster as dg
import pytest

from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.checks import all_checks, check_schedule, tiers
from cdc_lake.pipeline.spec import ChecksSpec
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon

SIX_HOURS = 6 * 3600


@pytest.fixture
def schedule(shop: World, instance: dg.DagsterInstance, clock: Clock) -> Daemon:
    """The sensor that launches the scheduled checks; all lake tables are materialised."""
    for table in shop.flow.tables:
        instance.report_runless_asset_event(dg.AssetMaterialization(table.key("lake"), metadata={"instant": "none"}))
    return Daemon.of("shop_checks", shop, instance, clock)


def test_every_six_hours_by_default_from_the_last_run_on(schedule: Daemon, clock: Clock) -> None:
    schedule.run(dg.DagsterRunStatus.SUCCESS)
    assert schedule.skip().startswith("the next run is in 21")
    clock.go(SIX_HOURS - 60)
    assert schedule.skip().startswith("the next run is in ")
    clock.go(61)
    schedule.run(dg.DagsterRunStatus.SUCCESS)


def test_after_a_long_sleep_one_run_makes_up_for_all(schedule: Daemon, clock: Clock) -> None:
    schedule.run(dg.DagsterRunStatus.SUCCESS)
    clock.go(10 * SIX_HOURS)
    run = schedule.run()
    assert schedule.skip() == f"run {run.run_id} of this sensor is active"


def test_a_run_that_failed_is_launched_again(schedule: Daemon, clock: Clock) -> None:
    schedule.fail()
    assert "the next one in 5 s" in schedule.skip()
    clock.go(6)
    schedule.run(dg.DagsterRunStatus.SUCCESS)
    assert schedule.skip().startswith("the next run is in 21")


def test_it_runs_checks_alone(shop: World, schedule: Daemon) -> None:
    request = schedule.request()
    assert (request.job_name, request.asset_selection) == ("shop_checks", ())
    assert {f"{'/'.join(key.asset_key.path[1:])}:{key.name}" for key in request.asset_check_keys or ()} == {
        "source/orders:orders_have_customers",
        "dataset/totals:totals_equal_source",
        *(f"lake/{table.name}:{name}" for table in shop.flow.tables for name in LAKE_CHECKS),
    }


LAKE_CHECKS = ("equals_source", "keys_unique", "file_sizes_healthy")


def test_before_there_are_lake_tables_nothing_is_checked(
    shop: World, instance: dg.DagsterInstance, clock: Clock
) -> None:
    found = Daemon.of("shop_checks", shop, instance, clock)
    assert found.skip() == "lake tables not materialised yet: orders, customers"


A_DAY = "every 86400 s"


@pytest.mark.parametrize(
    ("every", "named"), [("off", [A_DAY]), ("hourly", ["every 3600 s", A_DAY]), ("45m", ["every 2700 s", A_DAY])]
)
def test_what_the_yaml_says(shop: World, every: str, named: list[str]) -> None:
    flow = replace(shop.flow, spec=shop.flow.spec.model_copy(update={"checks": ChecksSpec(verify_every=every)}))
    made = all_checks.build(flow)
    found = check_schedule.build(flow, Jobs(flow, made))
    assert [said for sensor, said in zip(found, named, strict=True) if said in (sensor.description or "")] == named


def test_the_whole_history_is_read_once_a_day(shop: World) -> None:
    @dg.asset_check(asset=shop.orders.key("raw"), metadata=tiers.DAILY)
    def manifests_whole() -> dg.AssetCheckResult:
        return dg.AssetCheckResult(passed=True)

    [sensor] = check_schedule.build(shop.flow, Jobs(shop.flow, [manifests_whole]))
    assert (sensor.name, sensor.description) == ("shop_daily_checks", "Runs manifests_whole every 86400 s.")
