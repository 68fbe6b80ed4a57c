"""Northwind's dashboard: its SQL returns what plain Python computes from the same order lines."""

from __future__ import annotations

import pytest

from cdc_lake.dashboard.render import render

from .northwind import SPEC, Line, order_lines, sqlite_query
from .shop import NOTE, RENDERED_AT

LINES = order_lines()
CUSTOMERS = {name: [line for line in LINES if line[0] == name] for name in {line[0] for line in LINES}}


def _values(sql: str | None, lines: list[Line] = LINES) -> dict[str, object]:
    assert sql is not None
    result = sqlite_query(lines)(sql)
    [row] = result.rows
    return dict(zip(result.columns, row, strict=True))


def test_key_figures_equal_the_order_lines() -> None:
    assert SPEC.key_figures is not None
    assert _values(SPEC.key_figures.sql) == {
        "revenue": pytest.approx(sum(line[5] for line in LINES)),
        "orders": 829,
        "customers": 89,
        "order_lines": 2152,
    }


def test_revenue_concentration_equals_the_order_lines() -> None:
    revenue = {name: sum(line[5] for line in lines) for name, lines in CUSTOMERS.items()}
    ranked = sorted(revenue, key=lambda name: (-revenue[name], name))
    total = sum(revenue.values())
    top = sum(revenue[name] for name in ranked[:20])
    assert SPEC.visuals[0].values is not None
    assert _values(SPEC.visuals[0].values.sql) == {
        "largest": f"{ranked[0]}, {ranked[1]} and {ranked[2]}",
        "largest_revenue": pytest.approx(sum(revenue[name] for name in ranked[:3])),
        "largest_share": pytest.approx(sum(revenue[name] for name in ranked[:3]) / total, abs=1e-6),
        "top_customers": 20,
        "top_share": pytest.approx(top / total, abs=1e-6),
        "rest_customers": 69,
        "rest_share": pytest.approx(1 - top / total, abs=1e-6),
    }


def test_the_infrequent_customer_with_the_highest_value_is_found() -> None:
    orders = {name: len({line[1] for line in lines}) for name, lines in CUSTOMERS.items()}
    revenue = {name: sum(line[5] for line in lines) / len(lines) for name, lines in CUSTOMERS.items()}
    average = sum(orders.values()) / len(orders)
    infrequent = [name for name in CUSTOMERS if orders[name] < average]
    top = max(infrequent, key=lambda name: revenue[name])
    assert SPEC.visuals[1].values is not None
    assert _values(SPEC.visuals[1].values.sql) == {
        "average_orders": pytest.approx(average, abs=1e-4),
        "average_revenue": pytest.approx(sum(line[5] for line in LINES) / len(LINES)),
        "top_customer": top,
        "top_customer_revenue": pytest.approx(revenue[top]),
        "top_customer_orders": orders[top],
    }
    result = sqlite_query(LINES)(SPEC.visuals[1].sql)
    assert {row[0] for row in result.rows if row[result.columns.index("infrequent")]} == set(infrequent)


@pytest.mark.parametrize("count", [0, 1, 2, 89])
def test_any_number_of_customers_can_be_rendered(count: int) -> None:
    names = sorted(CUSTOMERS)[:count]
    lines = [line for line in LINES if line[0] in names]
    assert SPEC.visuals[0].values is not None
    assert _values(SPEC.visuals[0].values.sql, lines)["top_customers"] == min(count, 20)
    rendered = render(SPEC, sqlite_query(lines), RENDERED_AT, NOTE)
    assert rendered.rows == {"revenue_by_customer": count, "quantity_and_revenue": count}
    assert len(rendered.previews) == (2 if count else 0)
