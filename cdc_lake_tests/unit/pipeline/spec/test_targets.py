"""A pipeline with several targets: the names of their tables, assets and sensors, and their entries in the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import dagster as dg
import pytest

from cdc_lake.contract.errors import ContractError, ObjectDamagedError, StoreUnreachableError
from cdc_lake.contract.table import timeline
from cdc_lake.pipeline import component, lake_commit
from cdc_lake.pipeline.assets.catalog_tables import register
from cdc_lake.pipeline.assets.dataset import require_readable
from cdc_lake.pipeline.automation.pending_runs import pending_apply
from cdc_lake.pipeline.automation.run_requests import Pending
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop
from cdc_lake_tests.fakes.shop.shop_pipeline import YAML, write_shop
from cdc_lake_tests.unit.pipeline.parquet_shop import parquet_shop
from resources.glue.tables import HUDI_MERGING_INPUT

SECOND = "shop_lake\n    - { name: log, database: shop_log, table_type: mor }\n"
COLUMNS = [("order_id", "int"), ("__deleted", "boolean")]


@pytest.fixture
def pipeline(tmp_path: Path) -> Pipeline:
    """Return the shop with a second target."""
    write_shop(tmp_path / "two", YAML.replace("shop_lake\n", SECOND))
    return load("shop", tmp_path / "two")


def test_only_the_target_lake_is_left_out_of_names(pipeline: Pipeline) -> None:
    plain, log = pipeline.tables[0].in_targets
    assert [table.lake_table for table in pipeline.lake_tables] == [
        "orders",
        "log.orders",
        "customers",
        "log.customers",
    ]
    assert [(each.asset("raw"), each.asset("lake")) for each in (plain, log)] == [
        ("shop/raw/orders_raw", "shop/lake/orders_lake"),
        ("shop/raw/orders_raw", "shop/lake/log/orders_log"),
    ]
    assert [each.lake_prefix for each in (plain, log)] == ["lake/shop/orders/", "lake/shop/log.orders/"]
    assert [each.lease_key for each in (plain, log)] == ["leases/shop/orders.json", "leases/shop/log.orders.json"]
    assert [each.catalog_entries for each in (plain, log)] == [
        ("orders_current", "orders"),
        ("orders_ro_current", "orders_ro", "orders_rt"),
    ]
    assert [each.database for each in (plain, log)] == ["shop_lake", "shop_log"]


def test_the_jobs_spec_has_the_same_names(pipeline: Pipeline, shop: Shop) -> None:
    for table in pipeline.lake_tables:
        spec = table.upsert_spec(location(shop.resources["store"]), "test")
        assert (spec.prefix, spec.lease_key, spec.asset) == (table.lake_prefix, table.lease_key, table.asset("lake"))


def test_stages_before_the_lake_exist_once(pipeline: Pipeline) -> None:
    built = component.build(pipeline)
    keys = [key.to_user_string() for asset in built.assets or () for key in asset.keys]  # type: ignore[union-attr]
    assert len(keys) == len(set(keys))
    assert [key for key in keys if "/raw/" in key] == ["shop/raw/orders_raw", "shop/raw/customers_raw"]
    assert [key for key in keys if "/lake/" in key] == [
        *("shop/lake/orders_lake", "shop/lake/log/orders_log"),
        *("shop/lake/customers_lake", "shop/lake/log/customers_log"),
    ]
    assert {sensor.name for sensor in built.sensors or ()} >= {"shop_land", "shop_apply"}


def test_datasets_depend_on_the_first_target(pipeline: Pipeline) -> None:
    [totals] = [
        asset
        for asset in component.build(pipeline).assets or ()
        if isinstance(asset, dg.AssetsDefinition) and asset.key.path[-1] == "totals"
    ]
    assert {key.to_user_string() for key in totals.dependency_keys} == {
        *("shop/lake/orders_lake", "shop/lake/customers_lake")
    }


def test_a_merge_on_read_table_is_two_tables_in_the_catalog(pipeline: Pipeline, shop: Shop) -> None:
    table = pipeline.tables[0].in_targets[1]
    shop.athena.sql.make("shop_log", "orders_ro", [name for name, _ in COLUMNS])

    def registered() -> bool:
        return register(table, COLUMNS, shop.glue, shop.athena, shop.bucket, "s3://shop/lake/shop/log.orders", None)

    assert registered()
    assert not registered()
    read, merged = (shop.glue.get_table("shop_log", name) for name in ("orders_ro", "orders_rt"))
    assert read is not None
    assert merged is not None
    assert merged.input_format == HUDI_MERGING_INPUT != read.input_format
    assert shop.glue.get_table("shop_log", "orders_ro_current") is not None
    shop.glue.delete_table("shop_log", "orders_rt")
    assert registered()


def test_a_run_is_needed_while_one_target_is_behind(pipeline: Pipeline, shop: Shop) -> None:
    shop.order(1)
    shop.carry()  # applies to the target lake only
    pending = pending_apply(pipeline.tables[0], shop.resources["store"], owner="test")
    assert isinstance(pending, str)
    assert pending.startswith("apply:shop.sales.orders:log.orders:")


def test_a_damaged_target_does_not_stop_the_others(pipeline: Pipeline, shop: Shop) -> None:
    plain, log = pipeline.tables[0].in_targets
    shop.order(1)
    shop.carry()
    [commit] = [each.key for each in shop.bucket.scan(f"{plain.lake_prefix}.hoodie/") if each.key.endswith(".commit")]
    shop.bucket.delete([commit])
    shop.bucket.put_new(commit, b"damaged")

    def pending(reported: Mapping[dg.AssetKey, str]) -> Pending:
        return pending_apply(pipeline.tables[0], shop.resources["store"], "test", reported)

    assert str(pending({})).startswith("apply:shop.sales.orders:log.orders:")
    shop.apply(log)
    applied = timeline.last_commit(shop.bucket, log.lake_prefix)
    assert applied is not None
    assert pending({}) == f"report:shop.sales.orders:log.orders:{applied.instant}"
    with pytest.raises(ObjectDamagedError, match=commit):
        pending({log.key("lake"): applied.instant})


def test_an_outage_is_not_repeated_for_each_target(
    pipeline: Pipeline, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def no_answer(_store: object, table: PipelineTable) -> None:
        asked.append(table.lake_table)
        raise StoreUnreachableError("The store does not answer.")

    monkeypatch.setattr(lake_commit, "newest", no_answer)
    with pytest.raises(StoreUnreachableError):
        pending_apply(pipeline.tables[0], shop.resources["store"], "test", {})
    assert asked == ["orders"]


@pytest.mark.parametrize(
    ("sql", "wrong"),
    [
        ("SELECT * FROM orders_latest JOIN orders_raw USING (order_id)", ""),
        ("SELECT * FROM other.orders_current", ""),
        ("SELECT * FROM Orders", "orders"),
        ("SELECT * FROM shop_lake.orders_current", "orders_current"),
    ],
)
def test_a_dataset_names_the_tables_of_a_parquet_target(tmp_path: Path, sql: str, wrong: str) -> None:
    pipeline = parquet_shop(tmp_path)
    if not wrong:
        require_readable(pipeline, "totals.sql", sql, "local")
        return
    with pytest.raises(
        ContractError, match=f"no table {wrong}. Use orders_latest, .* or orders_raw, which has all changes"
    ):
        require_readable(pipeline, "totals.sql", sql, "local")


def test_names_of_a_parquet_target(tmp_path: Path) -> None:
    pipeline = parquet_shop(tmp_path)
    [orders] = pipeline.tables[0].in_targets
    assert (orders.catalog_table, orders.view) == ("orders_raw", "orders_latest")
    assert orders.catalog_entries == ("orders_latest", "orders_raw")
    assert pipeline.hudi_tables == ()
    landing = orders.typed_landing
    assert landing is not None
    assert (landing.source_table, landing.compression) == ("sales.orders", "gzip")
    assert not any(
        "purge" in name or "cluster" in name for name in (job.name for job in component.build(pipeline).jobs or ())
    )


@pytest.mark.parametrize(
    ("sql", "profile", "problem"),
    [
        ("SELECT * FROM orders_ro", "local", ""),
        ("SELECT * FROM orders_ro_current", "local", ""),
        ("SELECT * FROM Orders_RT", "local", "the local engine reads orders_rt without the changes in its log files"),
        ("SELECT * FROM orders_rt", "aws", ""),
        ("SELECT * FROM shop_lake.orders o", "local", "orders is merge-on-read, and the catalog has no table of that"),
        ("SELECT * FROM shop_log.orders o", "local", ""),
        ("SELECT * FROM shop_log.orders_rt", "local", "reads orders_rt without the changes in its log files"),
        ("WITH orders AS (SELECT * FROM orders_ro) SELECT * FROM orders", "local", ""),
        ("SELECT * FROM orders", "aws", "or orders_rt, which has the state of the last commit"),
        ("SELECT FRM (", "local", ""),
    ],
)
def test_a_dataset_names_the_readable_table_of_merge_on_read(
    tmp_path: Path, sql: str, profile: str, problem: str
) -> None:
    write_shop(tmp_path / "mor", YAML.replace("shop_lake\n", "shop_lake\n      table_type: mor\n"))
    pipeline = load("shop", tmp_path / "mor")
    if not problem:
        require_readable(pipeline, "totals.sql", sql, profile)
        return
    with pytest.raises(ContractError, match=f"datasets: totals.sql: .*{problem}"):
        require_readable(pipeline, "totals.sql", sql, profile)
