"""Northwind's dashboard: its SQL, run on SQLite, gives what plain Python finds in the same rows.

SQLite has no decimals; Athena's exact amounts are compared in the end-to-end tests.
"""

from __future__ import annotations

import random
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
import sqlglot

import cdc_lake
from cdc_lake.dashboard import DashboardSpec, QueryResult, Rows, load_dashboard
from cdc_lake.dashboard.render import RenderedDashboard, render

from .shop import MADE, NOTE

Line = tuple[str, int, int, float, int, float, float]
COLUMNS = "customer_id, order_id, product_id, discount, quantity, unit_price, revenue"


def _lines() -> list[Line]:
    """89 customers, three of them big; like Northwind's order lines."""
    randomness = random.Random(1998)
    lines: list[Line] = []
    order = 10247
    for customer in range(89):
        for _ in range(30 if customer < 3 else randomness.randint(1, 16)):
            order += 1
            for product in range(randomness.randint(1, 4)):
                quantity, price = randomness.randint(1, 40) * (3 if customer < 3 else 1), randomness.randint(2, 60)
                discount = randomness.choice([0, 0, 0.25])
                revenue = quantity * price * (1 - discount)
                lines.append((f"C{customer:04}", order, product, discount, quantity, price, revenue))
    return lines


LINES = _lines()


def _query(lines: list[Line]) -> Callable[[str], QueryResult]:
    database = sqlite3.connect(":memory:")
    database.execute(f"CREATE TABLE order_items ({COLUMNS})")
    database.executemany("INSERT INTO order_items VALUES (?, ?, ?, ?, ?, ?, ?)", lines)

    def query(sql: str) -> Rows:
        cursor = database.execute(sqlglot.transpile(sql, read="athena", write="sqlite")[0])
        return Rows(tuple(column[0] for column in cursor.description), tuple(cursor.fetchall()))

    return query


@pytest.fixture(scope="module")
def spec() -> DashboardSpec:
    return load_dashboard(Path(cdc_lake.__file__).parent / "defs" / "northwind" / "customers.yaml")


@pytest.fixture(scope="module")
def rendered(spec: DashboardSpec) -> RenderedDashboard:
    return render(spec, _query(LINES), MADE, NOTE)


def _by_customer() -> dict[str, list[Line]]:
    return {name: [line for line in LINES if line[0] == name] for name in {line[0] for line in LINES}}


def test_totals(rendered: RenderedDashboard) -> None:
    assert rendered.figures["revenue"].value == pytest.approx(sum(line[6] for line in LINES))
    assert rendered.figures["orders"].value == len({line[1] for line in LINES})
    assert rendered.figures["customers"].value == 89
    assert rendered.figures["order_lines"].value == len(LINES)
    assert rendered.rows == {"revenue_by_customer": 89, "quantity_and_revenue": 89}


def test_concentration(rendered: RenderedDashboard) -> None:
    revenue = {name: sum(line[6] for line in lines) for name, lines in _by_customer().items()}
    ranked = sorted(revenue, key=lambda name: (-revenue[name], name))
    total = sum(revenue.values())
    values = {name: figure.value for name, figure in rendered.figures.items()}
    assert values["biggest"] == f"{ranked[0]}, {ranked[1]} and {ranked[2]}"
    assert values["biggest_share"] == pytest.approx(sum(revenue[name] for name in ranked[:3]) / total, abs=1e-6)
    assert values["top_share"] == pytest.approx(sum(revenue[name] for name in ranked[:20]) / total, abs=1e-6)
    assert values["rest_share"] == pytest.approx(1 - sum(revenue[name] for name in ranked[:20]) / total, abs=1e-6)
    assert (values["top_customers"], values["rest_customers"]) == (20, 69)


def test_who_orders_seldom_and_dear(rendered: RenderedDashboard) -> None:
    customers = _by_customer()
    orders = {name: len({line[1] for line in lines}) for name, lines in customers.items()}
    average = {name: sum(line[6] for line in lines) / len(lines) for name, lines in customers.items()}
    seldom = [name for name in customers if orders[name] < sum(orders.values()) / len(orders)]
    dearest = max(seldom, key=lambda name: average[name])
    values = {name: figure.value for name, figure in rendered.figures.items()}
    assert values["dearest"] == dearest
    assert values["dearest_revenue"] == pytest.approx(average[dearest])
    assert values["dearest_orders"] == orders[dearest]
    assert values["average_revenue"] == pytest.approx(sum(line[6] for line in LINES) / len(LINES))


@pytest.mark.parametrize("count", [0, 1, 2])
def test_few_customers_or_none(spec: DashboardSpec, count: int) -> None:
    names = sorted({line[0] for line in LINES})[:count]
    rendered = render(spec, _query([line for line in LINES if line[0] in names]), MADE, NOTE)
    assert rendered.figures["biggest"].value in (None, "C0000", "C0000, C0001", "C0001, C0000")
    assert rendered.rows == {"revenue_by_customer": count, "quantity_and_revenue": count}
