"""The generated data: the size and distribution of Northwind, and reproducible."""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from datetime import date
from typing import Any

import pytest

from cdc_lake.samples.northwind.generate import dataset
from cdc_lake.samples.sample_tables import Table

Tables = dict[str, Table]
Revenue = dict[str, list[float]]


@pytest.fixture(scope="module")
def tables() -> Tables:
    return {table.name: table for table in dataset()}


def rows(tables: Tables, name: str) -> list[dict[str, Any]]:
    return [dict(zip(tables[name].columns, row, strict=True)) for row in tables[name].rows]


@pytest.fixture(scope="module")
def revenue(tables: Tables) -> Revenue:
    """The revenue of each order line, by customer."""
    customers = {order["order_id"]: order["customer_id"] for order in rows(tables, "orders")}
    by_customer = defaultdict(list)
    for line in rows(tables, "order_details"):
        value = line["unit_price"] * line["quantity"] * (1 - line["discount"])
        by_customer[customers[line["order_id"]]].append(value)
    return by_customer


def test_every_table_has_northwinds_number_of_rows(tables: Tables) -> None:
    assert {name: len(table.rows) for name, table in tables.items()} == {
        "categories": 8,
        "customer_customer_demo": 0,
        "customer_demographics": 0,
        "customers": 91,
        "employee_territories": 49,
        "employees": 9,
        "order_details": 2152,
        "orders": 829,
        "products": 77,
        "region": 4,
        "shippers": 6,
        "suppliers": 29,
        "territories": 53,
        "us_states": 51,
    }


def test_the_data_is_the_same_on_every_machine() -> None:
    first, second = dataset(), dataset()
    assert first == second
    digest = hashlib.sha256(repr(first).encode()).hexdigest()
    assert digest[:16] == "d798cbe2b5bcdae7", (
        "the data changed: if that is intended, update this digest and the changelog"
    )


def test_another_seed_gives_other_data_of_the_same_size() -> None:
    other, usual = dataset(seed=1), dataset()
    assert other != usual
    assert [len(table.rows) for table in other] == [len(table.rows) for table in usual]


def test_orders_have_northwinds_ids_and_dates_and_the_last_is_unshipped(tables: Tables) -> None:
    orders = rows(tables, "orders")
    assert [order["order_id"] for order in orders] == [n for n in range(10248, 11078) if n != 11075]
    assert orders[0]["order_date"] == date(1996, 7, 4)
    assert orders[-1]["order_date"] == date(1998, 5, 6)
    assert orders == sorted(orders, key=lambda order: order["order_date"])
    assert orders[-1]["shipped_date"] is None
    assert all(order["shipped_date"] is None or order["shipped_date"] > order["order_date"] for order in orders)
    assert 10 <= sum(order["shipped_date"] is None for order in orders) <= 30


def test_keys_are_unique_and_references_are_valid(tables: Tables) -> None:
    keys = {
        "customers": "customer_id",
        "products": "product_id",
        "orders": "order_id",
        "employees": "employee_id",
        "territories": "territory_id",
        "suppliers": "supplier_id",
    }
    ids = {name: {row[key] for row in rows(tables, name)} for name, key in keys.items()}
    assert all(len(ids[name]) == len(tables[name].rows) for name in keys)
    lines = rows(tables, "order_details")
    assert len({(line["order_id"], line["product_id"]) for line in lines}) == len(lines)
    assert {line["order_id"] for line in lines} == ids["orders"]
    assert {line["product_id"] for line in lines} == ids["products"]
    assert {row["supplier_id"] for row in rows(tables, "products")} == ids["suppliers"]
    assert {row["employee_id"] for row in rows(tables, "employee_territories")} == ids["employees"]
    assert all(len(key) == 5 and key.isascii() and key.isalpha() and key.isupper() for key in ids["customers"])


def test_prices_have_two_decimals(tables: Tables) -> None:
    for line in rows(tables, "order_details"):
        assert round(line["unit_price"], 2) == line["unit_price"]
        assert line["unit_price"] < 1000
        assert line["discount"] in (0.0, 0.05, 0.1, 0.15, 0.2, 0.25)
        assert 1 <= line["quantity"] <= 130


def test_revenue_is_concentrated_like_in_northwind(revenue: Revenue) -> None:
    """In Northwind, three customers have 25% (8.7, 8.3 and 8.2), the fourth has 4.0%, and the first twenty have 63%."""
    totals = sorted((sum(lines) for lines in revenue.values()), reverse=True)
    shares = [total / sum(totals) for total in totals]
    assert len(totals) == 89, "two customers never ordered"
    assert 0.23 < sum(shares[:3]) < 0.28
    assert shares[2] > 2 * shares[3]
    assert 0.60 < sum(shares[:20]) < 0.66
    assert 1_200_000 < sum(totals) < 1_400_000


def test_a_few_infrequent_customers_have_a_high_value(tables: Tables, revenue: Revenue) -> None:
    orders = Counter(order["customer_id"] for order in rows(tables, "orders"))
    average = {customer: sum(lines) / len(lines) for customer, lines in revenue.items()}
    high_value = [customer for customer in average if orders[customer] <= 4 and average[customer] > 1250]
    assert 3 <= len(high_value) <= 5
    assert max(average[customer] for customer in average if customer not in high_value) < min(
        average[c] for c in high_value
    )


def test_texts_fit_the_column_widths(tables: Tables) -> None:
    widths = {"company_name": 40, "contact_name": 30, "contact_title": 30, "address": 60, "city": 15}
    widths |= {"region": 15, "postal_code": 10, "country": 15, "phone": 24, "fax": 24, "category_name": 15}
    widths |= {"product_name": 40, "quantity_per_unit": 20, "last_name": 20, "first_name": 10}
    for name in tables:
        for row in rows(tables, name):
            assert all(len(str(row[column])) <= width for column, width in widths.items() if column in row), row
