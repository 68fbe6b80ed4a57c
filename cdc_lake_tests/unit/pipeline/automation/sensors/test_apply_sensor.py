"""The apply sensor launches a run for new manifests and for a lake table that lacks manifests."""

from __future__ import annotations

import dagster as dg

from cdc_lake.contract.objects import object_names
from cdc_lake.pipeline.source_health import schema_capture
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.unit.pipeline.automation.daemon import Clock, Daemon, orders, report_commits
from resources.postgres.table_columns import ColumnInfo


def test_nothing_is_launched_without_unapplied_manifests(
    shop: Shop, apply: Daemon, instance: dg.DagsterInstance
) -> None:
    assert apply.skip() == "the lake table does not exist yet, and there is nothing to apply"
    orders(shop, 1)
    shop.land(shop.orders)
    shop.apply(shop.orders)
    report_commits(shop, instance)
    assert apply.skip() == "everything that is landed is applied"
    orders(shop, 1, first=2)
    assert apply.skip() == "everything that is landed is applied"


def test_new_manifests_launch_only_the_lake_asset_with_its_light_checks(
    shop: Shop, apply: Daemon, instance: dg.DagsterInstance
) -> None:
    """Datasets, dashboards and the checks that read whole tables would delay the next commit."""
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
    report_commits(shop, instance)
    apply.skip()
    orders(shop, 1, first=2)
    shop.land(shop.orders)
    assert apply.request().run_key == "apply:shop.sales.orders:id-1:manifests-2-2:0"


def test_nothing_is_launched_while_the_landing_run_is_active(shop: Shop, land: Daemon, apply: Daemon) -> None:
    orders(shop, 5)
    run = land.run()
    shop.land(shop.orders)
    assert apply.skip() == f"run {run.run_id} of shop_land is active"
    apply.instance.report_run_failed(run)
    apply.request()


def test_a_removed_lake_table_is_recreated(shop: Shop, apply: Daemon) -> None:
    orders(shop, 1)
    shop.land(shop.orders)
    shop.apply(shop.orders)
    orders(shop, 1, first=2)
    shop.land(shop.orders)
    apply.request()
    shop.apply(shop.orders)
    shop.bucket.delete([item.key for item in shop.bucket.scan(shop.orders.lake_prefix)])
    apply.request()  # with the same newest manifest as the previous request


def test_one_apply_runs_at_a_time_and_a_failed_one_is_retried(shop: Shop, apply: Daemon, clock: Clock) -> None:
    orders(shop, 1)
    shop.land(shop.orders)
    apply.fail()
    assert "the next run is in 5 s" in apply.skip()
    clock.advance(6)
    apply.run()
    assert "is active" in apply.skip()


def test_a_run_that_failed_after_its_commit_is_retried(
    shop: Shop, apply: Daemon, instance: dg.DagsterInstance, clock: Clock
) -> None:
    """All manifests are applied, but the run did not update the catalog."""
    orders(shop, 1)
    shop.land(shop.orders)
    apply.fail()
    shop.apply(shop.orders)
    retried = apply.fail()
    assert retried.tags["cdc_lake_position/orders"].startswith("report:shop.sales.orders:")
    assert "the next run is in 5 s" in apply.skip()
    clock.advance(60)
    apply.run(dg.DagsterRunStatus.SUCCESS)
    report_commits(shop, instance)
    assert apply.skip() == "everything that is landed is applied"


def test_a_commit_of_a_command_launches_a_report_run(shop: Shop, apply: Daemon) -> None:
    orders(shop, 1)
    shop.land(shop.orders)
    shop.apply(shop.orders)  # as `cdc-lake dlq replay` and `cdc-lake resnapshot` do
    assert str(apply.request().run_key).startswith("report:")


def test_a_run_that_failed_before_a_reset_is_not_retried(shop: Shop, apply: Daemon, clock: Clock) -> None:
    orders(shop, 1)
    shop.land(shop.orders)
    apply.fail()
    shop.bucket.delete([item.key for item in shop.bucket.scan("")])
    clock.advance(6)
    assert apply.skip() == "the lake table does not exist yet, and there is nothing to apply"


def test_a_new_schema_version_launches_an_apply(shop: Shop, apply: Daemon) -> None:
    orders(shop, 1)
    shop.land(shop.orders)
    shop.apply(shop.orders)
    more = ColumnInfo("more", "integer", "integer", True, 9, None, "base", False)
    columns = (*shop.postgres.columns("sales", "orders"), more)
    shop.postgres.change_catalog("sales", "orders", columns=columns, missing={"more": "5"})
    schema_capture.capture(shop.orders, shop.source, shop.bucket)
    topic = shop.kafka.topic(shop.orders.topic)
    assert topic is not None
    assert apply.request().run_key == f"apply:shop.sales.orders:{topic.topic_id}:schema-2:0"


def test_only_tables_with_landed_records_are_applied(shop: Shop, apply: Daemon) -> None:
    shop.customer("ANNE")
    shop.land(shop.customers)
    assert apply.request().asset_selection == (shop.customers.key("lake"),)


def test_one_run_applies_all_tables(shop: Shop, apply: Daemon) -> None:
    orders(shop, 1)
    shop.customer("ANNE")
    for table in shop.pipeline.tables:
        shop.land(table)
    request = apply.request()
    assert request.asset_selection == (shop.orders.key("lake"), shop.customers.key("lake"))
    assert request.tags["cdc_lake_position/customers"] == "apply:shop.sales.customers:id-2:manifests-1-1"


def test_a_broken_table_does_not_block_the_others(shop: Shop, apply: Daemon) -> None:
    orders(shop, 1)
    shop.customer("ANNE")
    for table in shop.pipeline.tables:
        shop.land(table)
    shop.bucket.write(object_names.manifest_key("shop", shop.orders.topic, 1), b"{}")
    assert apply.request().asset_selection == (shop.customers.key("lake"),)
    shop.apply(shop.customers)
    report_commits(shop, apply.instance)
    assert "Cannot read manifest 1 of topic shop.sales.orders" in apply.skip()
