"""Checks of source, lake and dataset: rows that are wrong, doubled, missing, or too many turn them red."""

from __future__ import annotations

import dagster as dg
import pytest

from cdc_lake.jobs.verify import Difference, VerifyReport
from cdc_lake.pipeline.checks import content, dataset, source
from cdc_lake_tests.fake_pipeline import World
from cdc_lake_tests.fakes.dagster import evaluate

ORDERS = ["order_id", "customer_id", "total", "__deleted", "_hoodie_file_name"]
MB = 2**20


def check(shop: World, name: str) -> dg.AssetCheckResult:
    """What one check of the orders' lake table finds."""
    found = {each.check_key.name: each for each in content.build(shop.orders)}
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


def filled(shop: World) -> World:
    """Three orders in every stage."""
    shop.customer("ANNE")
    for number in (1, 2, 3):
        shop.order(number, total=f"{number}.50")
    shop.land(shop.orders)
    shop.apply(shop.orders)
    return shop


def lake(shop: World, *rows: tuple[object, ...]) -> None:
    """The lake's rows of orders are these, whatever was applied."""
    shop.athena.sql.make("shop_lake", "orders", ORDERS, [(*row, False, "newest.parquet") for row in rows])


def test_keys_unique(shop: World) -> None:
    assert check(filled(shop), "keys_unique").passed


def test_a_doubled_key(shop: World) -> None:
    lake(shop, (1, "ANNE", "1.50"), (2, "ANNE", "2.50"), (2, "ANNE", "2.50"))
    found = check(shop, "keys_unique")
    assert not found.passed
    assert found.metadata["doubled_keys"].value == [["2", "2"]]


def test_equals_source(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    report = VerifyReport(3, 3, 2, 0, 1, 0, 0, 0, 0, (), {"source": 0.5})
    asked = verified(monkeypatch, report)
    found = check(filled(shop), "equals_source")
    assert found.passed
    assert (found.metadata["compared"].value, found.metadata["pending"].value) == (2, 1)
    assert found.metadata["seconds_source"].value == 0.5
    assert found.description == "Pending, not compared: 1 of 3 keys"
    assert asked == [(shop.orders, shop.deployment.stream_seconds)]


def test_nothing_to_compare_is_not_green(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    verified(monkeypatch, VerifyReport(3, 3, 0, 0, 3, 0, 0, 0, 0, (), {}))
    found = check(filled(shop), "equals_source")
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert "Nothing was compared" in (found.description or "")


def test_a_key_that_is_never_judged_is_red(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    key = {"order_id": "7"}
    report = VerifyReport(3, 3, 2, 0, 1, 0, 0, 0, 0, (), {}, pending_keys={"ab12": key}, never_judged=[key])
    verified(monkeypatch, report)
    found = check(filled(shop), "equals_source")
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert (found.description or "").startswith("Cannot compare 1 key of orders, the first one order_id=7: in each of")
    assert "Run `cdc-lake verify shop`" in (found.description or "")
    assert found.metadata["not_judged"].value == found.metadata["never_judged"].value == [key]


def test_keys_that_are_never_judged_are_red_where_nothing_is(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    key = {"order_id": "7"}
    verified(monkeypatch, VerifyReport(1, 1, 0, 0, 1, 0, 0, 0, 0, (), {}, {"ab12": key}, [key]))
    found = check(filled(shop), "equals_source")
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)


def test_a_cell_differs(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    one = Difference("different", {"order_id": "2"}, {"total": ("2.50", "2.51")})
    verified(monkeypatch, VerifyReport(3, 3, 3, 0, 0, 0, 0, 1, 0, [one], {}))
    found = check(filled(shop), "equals_source")
    assert not found.passed
    (told,) = found.metadata["differences"].value
    assert (told["key"], told["columns"]) == ({"order_id": "2"}, {"total": ["2.50", "2.51"]})


def verified(monkeypatch: pytest.MonkeyPatch, report: VerifyReport) -> list[tuple[object, float]]:
    """Let the oracle say this; what it was asked."""
    asked: list[tuple[object, float]] = []

    def answer(table: object, _systems: object, *, seconds: float, limit: int) -> VerifyReport:
        assert limit
        asked.append((table, seconds))
        return report

    monkeypatch.setattr(content, "verify_applied", answer)
    return asked


def test_small_files(shop: World) -> None:
    assert check(filled(shop), "file_sizes_healthy").passed  # one small file is right for a small table
    shop.athena.sql.make("shop_lake", "orders", ORDERS, [(n, "ANNE", "1", False, f"{n}.parquet") for n in (1, 2)])
    for number in (1, 2):
        shop.bucket.write(f"{shop.orders.lake_prefix}PL/{number}.parquet", b"x" * 1000)
    found = check(shop, "file_sizes_healthy")
    assert not found.passed
    assert (found.metadata["live_files"].value, found.metadata["mean_bytes"].value) == (2, 1000)


def test_old_file_slices_and_other_tables_do_not_count(shop: World) -> None:
    filled(shop)
    for key in ("lake/shop/orders/old.parquet", "lake/shop/customers/newest.parquet"):
        shop.bucket.write(key, b"x")
    assert check(shop, "file_sizes_healthy").metadata["live_files"].value == 1


def test_a_file_that_rows_come_from_is_not_there(shop: World) -> None:
    lake(filled(shop), (1, "ANNE", "1.50"))
    shop.bucket.delete([f"{shop.orders.lake_prefix}newest.parquet"])
    found = check(shop, "file_sizes_healthy")
    assert not found.passed
    assert found.metadata["missing_files"].value == ["newest.parquet"]


def test_big_files_are_healthy_however_many(shop: World) -> None:
    shop.athena.sql.make("shop_lake", "orders", ORDERS, [(n, "ANNE", "1", False, f"{n}.parquet") for n in (1, 2)])
    for number in (1, 2):
        shop.bucket.write(f"{shop.orders.lake_prefix}{number}.parquet", b"x" * MB)
    assert check(shop, "file_sizes_healthy").passed


def totals(shop: World) -> dg.AssetCheckResult:
    """The dataset's check. Its view has the lake's rows."""
    [made] = dataset.build(shop.flow)
    shop.athena.execute('CREATE OR REPLACE VIEW "shop_lake"."totals" AS SELECT customer_id, total FROM orders_current')
    return evaluate(
        made,
        postgres=shop.postgres,
        kafka=shop.kafka,
        connect=shop.connect,
        store=shop.store,
        athena=shop.athena,
        deployment=shop.deployment,
    )


def test_only_a_dataset_with_a_question_for_the_source_is_compared(shop: World) -> None:
    assert [each.check_key.asset_key.path for each in dataset.build(shop.flow)] == [["shop", "dataset", "totals"]]


def test_totals_equal_the_source(shop: World) -> None:
    found = totals(filled(shop))
    assert found.passed
    assert found.metadata["lake"].value == {"rows": "3", "total": "7.50"}


def test_no_rows_on_either_side_are_equal_totals(shop: World) -> None:
    found = totals(shop)
    assert found.passed
    assert found.metadata["source"].value == {"rows": "0", "total": "0"}


@pytest.mark.parametrize(
    "rows",
    [[(1, "ANNE", "1.50"), (2, "ANNE", "2.50"), (3, "ANNE", "3.51")], [(1, "ANNE", "4.00"), (2, "ANNE", "3.50")]],
    ids=["a sum differs", "as much in fewer rows"],
)
def test_totals_that_differ(shop: World, rows: list[tuple[object, ...]]) -> None:
    filled(shop)
    shop.land(shop.customers)
    shop.apply(shop.customers)
    lake(shop, *rows)
    found = totals(shop)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.ERROR)
    assert found.metadata["source"].value == {"rows": "3", "total": "7.50"}


def test_totals_that_differ_by_what_is_on_its_way(shop: World) -> None:
    filled(shop)
    shop.order(4, total="1.00")
    found = totals(shop)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)
    assert found.description == "Not comparable now: the lake has not applied all changes yet"


def test_totals_that_differ_by_a_commit_during_the_comparison(shop: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lake is read before an order is inserted, which is in the lake before the check looks what is on its way."""
    filled(shop)
    read = dataset.totals

    def read_then_commit(*of: object) -> object:
        found = read(*of)  # type: ignore[arg-type]
        shop.order(4, total="1.00")
        for table in shop.flow.tables:
            shop.land(table)
            shop.apply(table)
        return found

    monkeypatch.setattr(dataset, "totals", read_then_commit)
    found = totals(shop)
    assert (found.passed, found.severity) == (False, dg.AssetCheckSeverity.WARN)


def test_a_question_to_the_source_that_finds_nothing(shop: World) -> None:
    made = source.build(shop.flow)[0]
    assert evaluate(made, postgres=filled(shop).postgres).passed


def test_a_question_to_the_source_whose_rows_are_faults(shop: World) -> None:
    made = source.build(shop.flow)[0]
    for number in range(12):
        shop.order(number, customer_id="NOBODY")
    found = evaluate(made, postgres=shop.postgres)
    assert not found.passed
    assert found.metadata["faults"].value == 12
    assert found.metadata["first"].value == [[str(number)] for number in range(10)]


def test_a_table_that_takes_truncate(shop: World) -> None:
    orders, _ = source.build(shop.flow)[1:]
    found = evaluate(orders, postgres=shop.postgres)
    assert not found.passed
    assert found.metadata["unguarded"].value == ["sales.orders"]
    shop.postgres.refuse_truncate("sales", "orders")
    assert evaluate(orders, postgres=shop.postgres).passed
