"""Checks of source, lake and dataset fail on wrong, duplicate, missing or extra rows."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from cdc_lake.jobs.verify import Difference, VerifyReport
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import dataset_totals
from cdc_lake.pipeline.assets.standard_metadata import LAKE_COMMITS
from cdc_lake.pipeline.checks import dataset, lake, source
from cdc_lake_tests.fakes.dagster import evaluate
from cdc_lake_tests.fakes.shop.fake_pipeline import Shop

ORDERS = ["order_id", "customer_id", "total", "__deleted", "_hoodie_file_name"]
MB = 2**20


def check(shop: Shop, name: str) -> dg.AssetCheckResult:
    """Evaluate one check of the orders' lake table."""
    found = {each.check_key.name: each for each in lake.build(shop.orders)}
    fakes: dict[str, dict[str, object]] = {
        "keys_unique": {"athena": shop.athena},
        "file_sizes_healthy": {"athena": shop.athena, "store": shop.store},
        "equals_source": {
            "postgres": shop.postgres,
            "kafka": shop.kafka,
            "connect": shop.connect,
            "store": shop.store,
            "spark": shop.spark,
            "deployment": shop.deployment,
        },
    }
    return evaluate(found[name], **fakes[name])


def filled(shop: Shop) -> Shop:
    """Carry three orders through every stage."""
    shop.customer("ANNE")
    for number in (1, 2, 3):
        shop.order(number, total=f"{number}.50")
    shop.land(shop.orders)
    shop.apply(shop.orders)
    return shop


def replace_lake_rows(shop: Shop, *rows: tuple[object, ...]) -> None:
    """Replace the lake's rows of the orders."""
    shop.athena.sql.make("shop_lake", "orders", ORDERS, [(*row, False, "newest.parquet") for row in rows])


def test_keys_unique_passes_without_duplicates(shop: Shop) -> None:
    assert check(filled(shop), "keys_unique").passed


def test_a_duplicate_key_fails_keys_unique(shop: Shop) -> None:
    replace_lake_rows(shop, (1, "ANNE", "1.50"), (2, "ANNE", "2.50"), (2, "ANNE", "2.50"))
    found = check(shop, "keys_unique")
    assert not found.passed
    assert found.metadata["doubled_keys"].value == [["2", "2"]]


def test_equals_source_reports_compared_and_pending_keys(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    report = VerifyReport(3, 3, 2, 0, 1, 0, 0, 0, 0, (), {"source": 0.5})
    calls = patch_report(monkeypatch, report)
    found = check(filled(shop), "equals_source")
    assert found.passed
    assert (found.metadata["compared"].value, found.metadata["pending"].value) == (2, 1)
    assert found.metadata["seconds_source"].value == 0.5
    assert found.description == "Pending, not compared: 1 of 3 keys"
    assert calls == [(shop.orders, shop.deployment.stream_seconds)]


def test_equals_source_warns_if_nothing_was_compared(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    patch_report(monkeypatch, VerifyReport(3, 3, 0, 0, 3, 0, 0, 0, 0, (), {}))
    found = check(filled(shop), "equals_source")
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "Nothing was compared" in (found.description or "")


def test_a_key_that_is_never_compared_fails_equals_source(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    key = {"order_id": "7"}
    report = VerifyReport(3, 3, 2, 0, 1, 0, 0, 0, 0, (), {}, pending_keys={"ab12": key}, never_compared=[key])
    patch_report(monkeypatch, report)
    found = check(filled(shop), "equals_source")
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert (found.description or "").startswith("Cannot compare 1 key of orders, the first one order_id=7: in each of")
    assert "Run `cdc-lake verify shop`" in (found.description or "")
    assert found.metadata["not_compared"].value == found.metadata["never_compared"].value == [key]


def test_a_key_that_is_never_compared_fails_even_if_nothing_else_was_compared(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = {"order_id": "7"}
    patch_report(monkeypatch, VerifyReport(1, 1, 0, 0, 1, 0, 0, 0, 0, (), {}, {"ab12": key}, [key]))
    found = check(filled(shop), "equals_source")
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)


def test_a_differing_cell_fails_equals_source(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    difference = Difference("different", {"order_id": "2"}, {"total": ("2.50", "2.51")})
    patch_report(monkeypatch, VerifyReport(3, 3, 3, 0, 0, 0, 0, 1, 0, [difference], {}))
    found = check(filled(shop), "equals_source")
    assert not found.passed
    described: Any = found.metadata["differences"].value
    (only,) = described
    assert (only["key"], only["columns"]) == ({"order_id": "2"}, {"total": ["2.50", "2.51"]})


def patch_report(monkeypatch: pytest.MonkeyPatch, report: VerifyReport) -> list[tuple[object, float]]:
    """Make the verification return this report; return the arguments of its calls."""
    calls: list[tuple[object, float]] = []

    def answer(table: object, _systems: object, *, seconds: float, limit: int) -> VerifyReport:
        assert limit
        calls.append((table, seconds))
        return report

    monkeypatch.setattr(lake, "verify_applied", answer)
    return calls


def test_many_small_files_fail_file_sizes_healthy(shop: Shop) -> None:
    assert check(filled(shop), "file_sizes_healthy").passed  # one small file is normal for a small table
    shop.athena.sql.make("shop_lake", "orders", ORDERS, [(n, "ANNE", "1", False, f"{n}.parquet") for n in (1, 2)])
    for number in (1, 2):
        shop.bucket.write(f"{shop.orders.lake_prefix}PL/{number}.parquet", b"x" * 1000)
    found = check(shop, "file_sizes_healthy")
    assert not found.passed
    assert (found.metadata["live_files"].value, found.metadata["mean_bytes"].value) == (2, 1000)


def test_one_small_file_in_each_partition_is_healthy(shop: Shop) -> None:
    shop.athena.sql.make("shop_lake", "orders", ORDERS, [(n, "ANNE", "1", False, f"{n}.parquet") for n in (1, 2)])
    for number, partition in ((1, "PL"), (2, "DE")):
        shop.bucket.write(f"{shop.orders.lake_prefix}{partition}/{number}.parquet", b"x" * 1000)
    assert check(shop, "file_sizes_healthy").passed


def test_old_file_slices_and_files_of_other_tables_are_ignored(shop: Shop) -> None:
    filled(shop)
    for key in ("lake/shop/orders/old.parquet", "lake/shop/customers/newest.parquet"):
        shop.bucket.write(key, b"x")
    assert check(shop, "file_sizes_healthy").metadata["live_files"].value == 1


def test_a_missing_file_with_live_rows_is_reported(shop: Shop) -> None:
    replace_lake_rows(filled(shop), (1, "ANNE", "1.50"))
    shop.bucket.delete([f"{shop.orders.lake_prefix}newest.parquet"])
    found = check(shop, "file_sizes_healthy")
    assert not found.passed
    assert found.metadata["missing_files"].value == ["newest.parquet"]


def test_any_number_of_big_files_is_healthy(shop: Shop) -> None:
    shop.athena.sql.make("shop_lake", "orders", ORDERS, [(n, "ANNE", "1", False, f"{n}.parquet") for n in (1, 2)])
    for number in (1, 2):
        shop.bucket.write(f"{shop.orders.lake_prefix}{number}.parquet", b"x" * MB)
    assert check(shop, "file_sizes_healthy").passed


def totals(shop: Shop, built_over: dict[str, str] | None = None) -> dg.AssetCheckResult:
    """Evaluate the dataset's check, with a view over the lake's rows that was built over these commits."""
    [definition] = dataset.build(shop.pipeline)
    shop.athena.execute('CREATE OR REPLACE VIEW "shop_lake"."totals" AS SELECT customer_id, total FROM orders_current')
    with dg.DagsterInstance.ephemeral() as instance:
        if built_over is not None:
            key = shop.pipeline.key("dataset", "totals")
            instance.report_runless_asset_event(dg.AssetMaterialization(key, metadata={LAKE_COMMITS: built_over}))
        return evaluate(
            definition,
            context=SimpleNamespace(instance=instance),
            postgres=shop.postgres,
            kafka=shop.kafka,
            connect=shop.connect,
            store=shop.store,
            athena=shop.athena,
            deployment=shop.deployment,
        )


def test_only_a_dataset_with_source_sql_is_compared(shop: Shop) -> None:
    assert [each.check_key.asset_key.path for each in dataset.build(shop.pipeline)] == [["shop", "dataset", "totals"]]


def test_totals_equal_the_source(shop: Shop) -> None:
    found = totals(filled(shop))
    assert found.passed
    assert found.metadata["lake"].value == {"rows": "3", "total": "7.50"}


def test_empty_totals_are_equal(shop: Shop) -> None:
    found = totals(shop)
    assert found.passed
    assert found.metadata["source"].value == {"rows": "0", "total": "0"}


@pytest.mark.parametrize(
    "rows",
    [[(1, "ANNE", "1.50"), (2, "ANNE", "2.50"), (3, "ANNE", "3.51")], [(1, "ANNE", "4.00"), (2, "ANNE", "3.50")]],
    ids=["a sum differs", "same sum in fewer rows"],
)
def test_different_totals_fail(shop: Shop, rows: list[tuple[object, ...]]) -> None:
    filled(shop)
    shop.land(shop.customers)
    shop.apply(shop.customers)
    replace_lake_rows(shop, *rows)
    found = totals(shop)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert found.metadata["source"].value == {"rows": "3", "total": "7.50"}


@pytest.mark.parametrize("earlier", [True, False])
def test_totals_of_a_refined_table_warn_until_it_is_built_over_the_newest_commits(shop: Shop, earlier: bool) -> None:
    filled(shop)
    shop.land(shop.customers)
    shop.apply(shop.customers)
    spec = shop.pipeline.spec
    refined = [each.model_copy(update={"table": True}) for each in spec.datasets]
    shop.pipeline = replace(shop.pipeline, spec=spec.model_copy(update={"datasets": refined}))
    commits = table_progress.lake_commits(shop.bucket, shop.pipeline)
    replace_lake_rows(shop, (1, "ANNE", "1.50"))
    found = totals(shop, commits | ({"orders": "20260101000000000"} if earlier else {}))
    assert (found.passed, found.severity is dg.AssetCheckSeverity.WARN) == (False, earlier)


def test_totals_that_differ_by_unapplied_changes_warn(shop: Shop) -> None:
    filled(shop)
    shop.order(4, total="1.00")
    found = totals(shop)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert found.description == "Not comparable now: the lake has not applied all changes yet"


def test_totals_that_differ_by_a_commit_during_the_comparison_warn(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """An order is inserted and applied between the read of the lake and the check for unapplied changes."""
    filled(shop)
    read = dataset_totals.totals

    def read_then_commit(*args: object) -> object:
        found = read(*args)  # type: ignore[arg-type]
        shop.order(4, total="1.00")
        for table in shop.pipeline.tables:
            shop.land(table)
            shop.apply(table)
        return found

    monkeypatch.setattr(dataset, "totals", read_then_commit)
    found = totals(shop)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)


def test_a_source_check_without_rows_passes(shop: Shop) -> None:
    definition = source.build(shop.pipeline)[0]
    assert evaluate(definition, postgres=filled(shop).postgres).passed


def test_a_source_check_with_rows_fails_and_shows_the_first_ten(shop: Shop) -> None:
    definition = source.build(shop.pipeline)[0]
    for number in range(12):
        shop.order(number, customer_id="NOBODY")
    found = evaluate(definition, postgres=shop.postgres)
    assert not found.passed
    assert found.metadata["faults"].value == 12
    assert found.metadata["first"].value == [[str(number)] for number in range(10)]


def test_a_table_that_accepts_truncate_fails_until_it_is_guarded(shop: Shop) -> None:
    orders, _ = source.build(shop.pipeline)[1:]
    found = evaluate(orders, postgres=shop.postgres)
    assert not found.passed
    assert found.metadata["unguarded"].value == ["sales.orders"]
    shop.postgres.refuse_truncate("sales", "orders")
    assert evaluate(orders, postgres=shop.postgres).passed
