"""The landing sensor: when it launches, when it waits, and how it retries."""

from __future__ import annotations

import hashlib

import dagster as dg
import pytest

from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon, orders


def test_nothing_is_launched_if_everything_is_landed(shop: Shop, land: Daemon) -> None:
    assert land.skip() == "everything is landed"
    orders(shop, 1)
    shop.land(shop.orders)
    assert land.skip() == "everything is landed"


def test_a_missing_topic_names_the_asset_to_materialise(shop: Shop, land: Daemon) -> None:
    shop.kafka.delete_topic(shop.orders.topic)
    assert "Materialise shop/topic/orders_topic first" in land.skip()


def test_a_run_is_launched_when_flush_records_are_pending(shop: Shop, land: Daemon) -> None:
    orders(shop, 4)
    assert land.skip() == "offsets to land: 4, waiting for 0 s"
    orders(shop, 1, first=5)
    request = land.request()
    assert request.run_key == "land:shop.sales.orders:id-1:after-manifest-0:0"
    assert request.tags["cdc_lake/pipeline"] == "shop"


def test_a_run_is_launched_after_flush_seconds(shop: Shop, land: Daemon, clock: Clock) -> None:
    orders(shop, 1)
    land.skip()
    clock.advance(29)
    assert land.skip() == "offsets to land: 1, waiting for 29 s"
    clock.advance(1)
    land.request()


def test_the_waiting_time_restarts_after_each_landing(shop: Shop, land: Daemon, clock: Clock) -> None:
    orders(shop, 1)
    land.skip()
    clock.advance(29)
    shop.land(shop.orders)
    orders(shop, 1, first=2)
    assert land.skip() == "offsets to land: 1, waiting for 0 s"
    clock.advance(29)
    land.skip()
    clock.advance(1)
    land.request()


def test_one_landing_runs_at_a_time(shop: Shop, land: Daemon) -> None:
    orders(shop, 5)
    run = land.run()
    orders(shop, 5, first=6)
    assert land.skip() == f"run {run.run_id} of this sensor is active"


@pytest.mark.parametrize("status", ["NOT_STARTED", "STARTING", "STARTED", "CANCELING"])
def test_a_run_in_each_unfinished_status_counts_as_active(shop: Shop, land: Daemon, status: str) -> None:
    orders(shop, 5)
    land.run(dg.DagsterRunStatus[status])
    assert "is active" in land.skip()


def test_nothing_is_landed_while_an_apply_run_is_active(shop: Shop, land: Daemon, apply: Daemon) -> None:
    """A landing run applies too, and would wait for the table's lease."""
    orders(shop, 5)
    shop.land(shop.orders)
    run = apply.run()
    orders(shop, 5, first=6)
    assert land.skip() == f"run {run.run_id} of shop_apply is active"


def customers(shop: Shop, count: int) -> None:
    for number in range(count):
        shop.customer(f"ANNE{number}")


def test_runs_of_other_tables_do_not_count(shop: Shop, land: Daemon) -> None:
    customers(shop, 5)
    land.run()
    orders(shop, 5)
    assert land.request().asset_selection == (shop.orders.key("raw"), shop.orders.key("lake"))


def test_one_run_lands_all_tables_that_have_something_new(shop: Shop, land: Daemon) -> None:
    customers(shop, 2)
    assert land.skip("customers") == "offsets to land: 2, waiting for 0 s"
    orders(shop, 5)
    keys = [table.key(stage) for stage in ("raw", "lake") for table in shop.pipeline.tables]
    run = land.run()
    assert run.tags["cdc_lake_position/customers"] == "land:shop.sales.customers:id-2:after-manifest-0"
    assert (
        land.keys[-1]
        == hashlib.sha256(
            b"land:shop.sales.orders:id-1:after-manifest-0:0\nland:shop.sales.customers:id-2:after-manifest-0:0"
        ).hexdigest()
    )
    assert land.skip() == f"run {run.run_id} of this sensor is active"
    land.instance.report_run_failed(run)
    land.clock.advance(6)
    assert land.request().asset_selection == tuple(keys)


def test_a_table_that_fails_does_not_delay_the_others(shop: Shop, land: Daemon) -> None:
    customers(shop, 5)
    orders(shop, 5)
    run = land.fail()
    shop.land(shop.orders)  # the customers failed
    orders(shop, 5, first=6)
    assert land.request().asset_selection == (shop.orders.key("raw"), shop.orders.key("lake"))
    shop.land(shop.orders)
    assert land.skip("customers") == f"run {run.run_id} of this sensor failed; the next run is in 5 s"


def tables_by_run(shop: Shop, land: Daemon) -> list[list[str]]:
    """Return the tables of each run that a tick requests."""
    found = land.tick()
    assert isinstance(found, dg.SensorResult)
    requests = found.run_requests or ()
    return [[t.name for t in shop.pipeline.tables if t.key("raw") in (each.asset_selection or ())] for each in requests]


def test_a_first_load_has_a_run_of_its_own(shop: Shop, land: Daemon) -> None:
    land.instance.report_runless_asset_event(dg.AssetMaterialization(shop.orders.key("lake")))
    customers(shop, 5)
    orders(shop, 1)
    assert tables_by_run(shop, land) == [["customers"]], "the orders wait for flush_seconds, not for the customers' run"
    orders(shop, 5, first=2)
    assert tables_by_run(shop, land) == [["orders"], ["customers"]]


def test_a_table_that_failed_twice_has_a_run_of_its_own(shop: Shop, land: Daemon, clock: Clock) -> None:
    customers(shop, 5)
    for pause in (5, 15):
        land.fail()
        clock.advance(pause + 1)
    orders(shop, 5)
    assert tables_by_run(shop, land) == [["orders"], ["customers"]]


def test_a_table_that_waits_for_a_retry_does_not_shorten_the_flush_time_of_the_others(shop: Shop, land: Daemon) -> None:
    customers(shop, 5)
    land.fail()
    orders(shop, 1)
    assert land.skip() == "offsets to land: 1, waiting for 0 s"


def test_one_run_lands_and_applies_with_the_light_checks_of_both_stages(shop: Shop, land: Daemon) -> None:
    orders(shop, 5)
    request = land.request()
    assert (request.job_name, request.asset_selection) == (
        "shop_land",
        (shop.orders.key("raw"), shop.orders.key("lake")),
    )
    assert {f"{key.asset_key.path[1]}:{key.name}" for key in request.asset_check_keys or ()} == {
        "raw:manifests_contiguous",
        "raw:landed_to_the_end",
        "raw:dead_letters_empty",
        "raw:watermark_fresh",
        "lake:watermark_fresh",
    }


def test_failed_runs_are_retried_after_growing_pauses(shop: Shop, land: Daemon, clock: Clock) -> None:
    orders(shop, 5)
    for pause in (5, 15, 60, 300, 300):
        run = land.fail()
        assert f"run {run.run_id} of this sensor failed; the next run is in {pause} s" in land.skip()
        clock.advance(pause - 1)
        assert "failed" in land.skip()
        clock.advance(1.5)
    assert [key.rpartition(":")[2] for key in land.keys] == ["0", "1", "2", "3", "4"]


def test_a_cancelled_run_is_retried(shop: Shop, land: Daemon, instance: dg.DagsterInstance, clock: Clock) -> None:
    orders(shop, 5)
    instance.report_run_canceled(land.run(dg.DagsterRunStatus.CANCELING))
    clock.advance(6)
    land.request()


def test_progress_resets_the_retry_count(shop: Shop, land: Daemon) -> None:
    orders(shop, 5)
    land.fail()
    shop.land(shop.orders)
    orders(shop, 5, first=6)
    assert land.request().run_key == "land:shop.sales.orders:id-1:after-manifest-1:0"


def test_a_recreated_topic_launches_the_run_that_reports_it(shop: Shop, land: Daemon) -> None:
    orders(shop, 5)
    shop.land(shop.orders)
    shop.kafka.make(shop.orders.topic)
    orders(shop, 5)  # the same end offset as the old topic's
    land.request()


def test_a_topic_that_lost_records_launches_the_run_that_reports_it(shop: Shop, land: Daemon) -> None:
    orders(shop, 5)
    shop.land(shop.orders)
    shop.kafka._topics[shop.orders.topic].records[0].pop()
    land.request()
