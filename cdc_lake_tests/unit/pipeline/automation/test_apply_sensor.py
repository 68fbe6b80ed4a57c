"""The applying sensor: new manifests launch it, and a lake that is behind them."""

from __future__ import annotations

import dagster as dg

from cdc_lake.pipeline.source_health import schema_capture
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon, orders, reported
from resources.postgres.table_columns import ColumnInfo


def test_nothing_to_apply(shop: World, apply: Daemon, instance: dg.DagsterInstance) -> None:
    assert apply.skip() == "there is no lake table yet, and nothing to apply"
    orders(shop, 1)
    shop.land(shop.orders)
    shop.apply(shop.orders)
    reported(shop, instance)
    assert apply.skip() == "everything that is landed is applied"
    orders(shop, 1, first=2)
    assert apply.skip() == "everything that is landed is applied"


def test_new_manifests_launch_the_lake_alone_with_its_light_checks(
    shop: World, apply: Daemon, instance: dg.DagsterInstance
) -> None:
    """Not datasets, dashboards, nor the checks that read whole tables: they would delay the next commit."""
    orders(shop, 1)
    shop.land(shop.orders)
    request = apply.request()
    assert request.run_key == "apply:shop.sales.orders:id-1:manifests-1-1:0"
    assert (request.job_name, request.asset_selection) == ("shop_apply", (shop.orders.key("lake"),))
    assert request.asset_check_keys == (
        dg.AssetCheckKey(shop.orders.key("lake"), "watermark_fresh"),
        dg.AssetCheckKey(shop.orders.key("raw"), "dead_letters_empty"),
    )
    shop.apply(shop.orders)
    reported(shop, instance)
    apply.skip()
    orders(shop, 1, first=2)
    shop.land(shop.orders)
    assert apply.request().run_key == "apply:shop.sales.orders:id-1:manifests-2-2:0"


def test_what_the_run_that_landed_it_applies_is_left_to_that_run(shop: World, land: Daemon, apply: Daemon) -> None:
    orders(shop, 5)
    run = land.run()
    shop.land(shop.orders)
    assert apply.skip() == f"run {run.run_id} of shop_orders_land is active"
    apply.instance.report_run_failed(run)
    apply.request()


def test_a_lake_that_was_removed_is_made_again(shop: World, apply: Daemon) -> None:
    orders(shop, 1)
    shop.land(shop.orders)
    shop.apply(shop.orders)
    orders(shop, 1, first=2)
    shop.land(shop.orders)
    apply.request()
    shop.apply(shop.orders)
    shop.bucket.delete([item.key for item in shop.bucket.scan(shop.orders.lake_prefix)])
    apply.request()  # the newest manifest is the one of the last request


def test_one_apply_at_a_time_and_again_after_a_failure(shop: World, apply: Daemon, clock: Clock) -> None:
    orders(shop, 1)
    shop.land(shop.orders)
    apply.fail()
    assert "the next one in 5 s" in apply.skip()
    clock.go(6)
    apply.run()
    assert "is active" in apply.skip()


def test_a_run_that_failed_after_its_commit_is_launched_again(
    shop: World, apply: Daemon, instance: dg.DagsterInstance, clock: Clock
) -> None:
    """Nothing is left to apply, but the catalog lacks what the run was to bring it."""
    orders(shop, 1)
    shop.land(shop.orders)
    apply.fail()
    shop.apply(shop.orders)
    again = apply.run()
    assert again.tags["cdc_lake/position"].startswith("report:shop.sales.orders:")
    instance.report_run_failed(again)
    assert "the next one in 5 s" in apply.skip()
    clock.go(60)
    apply.run(dg.DagsterRunStatus.SUCCESS)
    reported(shop, instance)
    assert apply.skip() == "everything that is landed is applied"


def test_what_a_command_committed_is_reported(shop: World, apply: Daemon) -> None:
    orders(shop, 1)
    shop.land(shop.orders)
    shop.apply(shop.orders)  # as `cdc-lake dlq replay` and `resnapshot` do
    assert str(apply.request().run_key).startswith("report:")


def test_a_run_that_failed_before_a_reset_is_not_launched_again(shop: World, apply: Daemon, clock: Clock) -> None:
    orders(shop, 1)
    shop.land(shop.orders)
    apply.fail()
    shop.bucket.delete([item.key for item in shop.bucket.scan("")])
    clock.go(6)
    assert apply.skip() == "there is no lake table yet, and nothing to apply"


def test_a_version_of_the_schema_that_the_table_has_not_got_is_due(shop: World, apply: Daemon) -> None:
    orders(shop, 1)
    shop.land(shop.orders)
    shop.apply(shop.orders)
    more = ColumnInfo("more", "integer", "integer", True, 9, None, None, None, "base", False)
    columns = (*shop.postgres.columns("sales", "orders"), more)
    shop.postgres.tells("sales", "orders", columns=columns, missing={"more": "5"})
    schema_capture.look(shop.orders, shop.postgres, shop.bucket)
    assert apply.request().run_key == "apply:shop.sales.orders:schema-2:0"


def test_each_table_has_its_own_sensors(shop: World, apply: Daemon, instance: dg.DagsterInstance, clock: Clock) -> None:
    shop.customer("ANNE")
    shop.land(shop.customers)
    assert apply.skip() == "there is no lake table yet, and nothing to apply"
    Daemon.of("shop_customers_apply", shop, instance, clock).request()
