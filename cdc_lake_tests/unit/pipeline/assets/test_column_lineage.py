"""Column lineage of a dataset, derived from its SQL."""

from __future__ import annotations

import dagster as dg

from cdc_lake.pipeline.assets import column_lineage
from cdc_lake.pipeline.loading import load

LAKE = dg.AssetKey(["northwind", "lake", "cdc_events"])


def test_dataset_columns_are_traced_to_lake_columns() -> None:
    sources = {"cdc_events_current": (LAKE, ["order_id", "customer_id", "order_items"])}
    sql = (load("northwind").folder / "order_items.sql").read_text()
    found = column_lineage.query_lineage(sql, ["customer_id", "order_id", "quantity", "revenue"], sources)
    assert {column: [dep.column_name for dep in deps] for column, deps in found.deps_by_column.items()} == {
        "customer_id": ["customer_id"],
        "order_id": ["order_id"],
        "quantity": ["order_items"],
        "revenue": ["order_items"],
    }
    assert {dep.asset_key for deps in found.deps_by_column.values() for dep in deps} == {LAKE}


def test_a_column_may_depend_on_two_tables_or_on_none() -> None:
    other = dg.AssetKey(["p", "lake", "b"])
    sources = {"a": (LAKE, ["x", "k"]), "b": (other, ["y", "k"])}
    found = column_lineage.query_lineage(
        "SELECT a.x + b.y AS total, 1 AS one FROM a JOIN b ON a.k = b.k", ["total", "one"], sources
    )
    assert [(dep.asset_key, dep.column_name) for dep in found.deps_by_column["total"]] == [(LAKE, "x"), (other, "y")]
    assert list(found.deps_by_column["one"]) == []


def test_a_table_without_known_columns_is_ignored() -> None:
    sources = {"a": (LAKE, ["x"]), "b": (dg.AssetKey(["p", "lake", "b"]), [])}
    found = column_lineage.query_lineage("SELECT x FROM a", ["x"], sources)
    assert [(dep.asset_key, dep.column_name) for dep in found.deps_by_column["x"]] == [(LAKE, "x")]
