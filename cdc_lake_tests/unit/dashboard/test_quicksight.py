"""Northwind's declaration as what QuickSight is asked for, and what a wrong one says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

import cdc_lake
from cdc_lake.dashboard import DashboardError, DashboardSpec, Rows, fingerprint, load_dashboard
from cdc_lake.dashboard.quicksight import board, state_of_rows
from resources.quicksight_visuals import Category, Column, Measure, NumberFormat, Pie, Scatter

NORTHWIND = Path(cdc_lake.__file__).parent / "defs" / "northwind" / "customers.yaml"
WELLS = {"kind": "pie", "by": "name", "value": {"column": "worth", "aggregate": "sum"}}
DECLARED: dict[str, Any] = {
    "sql": "SELECT name, quantity, price FROM sales",
    "columns": {"name": "string", "quantity": "integer", "price": "decimal"},
    "calculated": {"worth": "{quantity} * {price}"},
    "visuals": [{"visual": "bars", "chart": WELLS}],
}


def test_northwind_has_the_original_s_two_visuals_over_computed_revenue() -> None:
    found = board(load_dashboard(NORTHWIND), "northwind-customers")
    assert [each.name for each in found.rows.columns] == [
        "customer_id",
        "order_id",
        "quantity",
        "unit_price",
        "discount",
        "revenue",
    ]
    assert found.rows.column("revenue") == Column("revenue", "DECIMAL", "{quantity} * {unit_price} * (1 - {discount})")
    by = Category("customer_id", "Customer")
    assert found.visuals == (
        Pie(
            "revenue_by_customer",
            "Revenue by customer",
            by,
            Measure("revenue", "SUM", "Revenue", NumberFormat("$")),
            slices=20,
        ),
        Scatter(
            "quantity_and_revenue",
            "Average quantity against average revenue",
            by,
            Measure("quantity", "AVERAGE", "Average quantity per order line", NumberFormat(places=1)),
            Measure("revenue", "AVERAGE", "Average revenue per order line", NumberFormat("$")),
            Measure("order_id", "DISTINCT_COUNT", "Orders"),
        ),
    )


def test_tables_have_their_database_and_names_of_the_query_s_own_have_none() -> None:
    spec = load_dashboard(NORTHWIND)
    assert "FROM datalake.order_items" in board(spec, "x").rows.sql
    given = yaml.safe_load(NORTHWIND.read_text())
    given["quicksight"]["sql"] = "WITH l AS (SELECT * FROM datalake.order_items) SELECT * FROM l -- all\n"
    own = DashboardSpec.model_validate(given, context={"folder": NORTHWIND.parent})
    sql = board(own, "x").rows.sql
    assert "datalake.order_items" in sql
    assert sql.endswith("FROM l")


def test_the_state_of_the_rows_is_asked_for_in_one_row() -> None:
    asked: list[str] = []

    def query(sql: str) -> Rows:
        asked.append(sql)
        return Rows(("row_count", "row_checksum"), ((2155, "1F00"),))

    assert state_of_rows(load_dashboard(NORTHWIND), query) == "2155 1F00"
    assert 'CAST(ROW("customer_id", "order_id", "quantity", "unit_price", "discount") AS json)' in asked[0]


def test_without_a_declaration_it_says_what_to_add(spec: DashboardSpec) -> None:
    with pytest.raises(DashboardError, match="'Shop' has nothing to say to QuickSight; add the field quicksight"):
        board(spec, "x")


def test_the_page_is_no_other_for_it(declared: dict[str, Any], spec: DashboardSpec, load: Any) -> None:  # noqa: ANN401
    def query(_: str) -> Rows:
        return Rows(("a",), ((1,),))

    assert fingerprint(load({**declared, "quicksight": DECLARED}), query) == fingerprint(spec, query)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("sql", "SELECT 1 FROM staff", ["quicksight.sql: reads staff", "allowed: sales of the database shop"]),
        ("columns.price", "money", ["quicksight.columns.price", "'string', 'integer', 'decimal'", "'money'"]),
        (
            "calculated.worth",
            "{weight}",
            ["quicksight: calculated.worth names 'weight'", "allowed: name, price, quantity"],
        ),
        ("calculated.price", "{quantity}", ["quicksight: calculated.price is a column already"]),
        ("visuals.0.visual", "pies", ["quicksight.visuals[0].visual names 'pies'", "allowed: bars, dots"]),
        ("visuals.0.visual", "dots", ["is for a visual that is a bar on the page", "allowed: scatter"]),
        ("visuals.0.chart.kind", "bar", ["quicksight.visuals[0].chart.kind: 'bar'", "allowed: pie, scatter"]),
        ("visuals.0.chart.by", "who", ["quicksight: visuals[0].chart.by names 'who'", "price, quantity, worth"]),
        ("visuals.0.chart.value.column", "x", ["visuals[0].chart.value names 'x'"]),
        (
            "visuals.0.chart.value.column",
            "name",
            ["chart.value: sum takes a number", "price, quantity, worth"],
        ),
        ("visuals.0.chart.value.aggregate", "mean", ["quicksight.visuals[0].chart.value.aggregate", "'average'"]),
        ("visuals.0.chart.colour", "red", ["quicksight.visuals[0].chart: unknown field 'colour'", "kind, by, value"]),
    ],
)
def test_a_wrong_declaration_says_where(
    declared: dict[str, Any],
    load: Any,  # noqa: ANN401 - the fixture's callable
    path: str,
    value: object,
    expected: list[str],
) -> None:
    given = yaml.safe_load(yaml.safe_dump(DECLARED))
    *parents, last = [int(part) if part.isdigit() else part for part in path.split(".")]
    at: Any = given
    for part in parents:
        at = at[part]
    at[last] = value
    with pytest.raises(DashboardError) as caught:
        load({**declared, "quicksight": given})
    for text in expected:
        assert text in str(caught.value)
