"""The landing sensor: when it launches, when it waits, and what it does after failures."""

from __future__ import annotations

import dagster as dg
import pytest

from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon, orders


def test_nothing_to_land(shop: World, land: Daemon) -> None:
    assert land.skip() == "everything is landed"
    orders(shop, 1)
    shop.land(shop.orders)
    assert land.skip() == "everything is landed"


def test_no_topic_yet(shop: World, land: Daemon) -> None:
    shop.kafka.delete_topic(shop.orders.topic)
    assert "materialise shop/topic/orders first" in land.skip()


def test_flush_records(shop: World, land: Daemon) -> None:
    orders(shop, 4)
    assert land.skip() == "offsets to land: 4, waiting for 0 s"
    orders(shop, 1, first=5)
    request = land.request()
    assert request.run_key == "land:shop.sales.orders:id-1:after-manifest-0:0"
    assert request.tags["cdc_lake/pipeline"] == "shop"


def test_flush_seconds(shop: World, land: Daemon, clock: Clock) -> None:
    orders(shop, 1)
    land.skip()
    clock.go(29)
    assert land.skip() == "offsets to land: 1, waiting for 29 s"
    clock.go(1)
    land.request()


def test_the_waiting_starts_anew_after_each_landing(shop: World, land: Daemon, clock: Clock) -> None:
    orders(shop, 1)
    land.skip()
    clock.go(29)
    shop.land(shop.orders)
    orders(shop, 1, first=2)
    assert land.skip() == "offsets to land: 1, waiting for 0 s"
    clock.go(29)
    land.skip()
    clock.go(1)
    land.request()


def test_one_landing_at_a_time(shop: World, land: Daemon) -> None:
    orders(shop, 5)
    run = land.run()
    orders(shop, 5, first=6)
    assert land.skip() == f"run {run.run_id} of this sensor is active"


@pytest.mark.parametrize("status", ["NOT_STARTED", "STARTING", "STARTED", "CANCELING"])
def test_what_counts_as_under_way(shop: World, land: Daemon, status: str) -> None:
    orders(shop, 5)
    land.run(dg.DagsterRunStatus[status])
    assert "is active" in land.skip()


def test_nothing_is_landed_beside_a_run_that_applies(shop: World, land: Daemon, apply: Daemon) -> None:
    """It would apply too, and wait for the lease."""
    orders(shop, 5)
    shop.land(shop.orders)
    run = apply.run()
    orders(shop, 5, first=6)
    assert land.skip() == f"run {run.run_id} of shop_orders_apply is active"


def test_other_tables_runs_do_not_count(shop: World, land: Daemon, instance: dg.DagsterInstance, clock: Clock) -> None:
    for number in range(5):
        shop.customer(f"ANNE{number}")
    Daemon.of("shop_customers_land", shop, instance, clock).run()
    orders(shop, 5)
    land.request()


def test_one_run_lands_and_applies_with_the_light_checks_of_both(shop: World, land: Daemon) -> None:
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


def test_a_failed_run_is_requested_again_after_a_pause_that_grows(shop: World, land: Daemon, clock: Clock) -> None:
    orders(shop, 5)
    for pause in (5, 15, 60, 300, 300):
        run = land.fail()
        assert f"run {run.run_id} of this sensor failed; the next one in {pause} s" in land.skip()
        clock.go(pause - 1)
        assert "failed" in land.skip()
        clock.go(1.5)
    assert [key.rpartition(":")[2] for key in land.keys] == ["0", "1", "2", "3", "4"]


def test_a_cancelled_run_is_requested_again(
    shop: World, land: Daemon, instance: dg.DagsterInstance, clock: Clock
) -> None:
    orders(shop, 5)
    instance.report_run_canceled(land.run(dg.DagsterRunStatus.CANCELING))
    clock.go(6)
    land.request()


def test_progress_forgets_failures(shop: World, land: Daemon) -> None:
    orders(shop, 5)
    land.fail()
    shop.land(shop.orders)
    orders(shop, 5, first=6)
    assert land.request().run_key == "land:shop.sales.orders:id-1:after-manifest-1:0"


def test_a_topic_made_again_launches_the_run_that_says_so(shop: World, land: Daemon) -> None:
    orders(shop, 5)
    shop.land(shop.orders)
    shop.kafka.make(shop.orders.topic)
    orders(shop, 5)  # it ends where the old one did
    land.request()


def test_a_topic_that_lost_records_launches_the_run_that_says_so(shop: World, land: Daemon) -> None:
    orders(shop, 5)
    shop.land(shop.orders)
    shop.kafka._topics[shop.orders.topic].records[0].pop()
    land.request()
