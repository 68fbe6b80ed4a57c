"""Northwind's dashboard over the sample data, with SQLite instead of Athena."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import sqlglot

import cdc_lake
from cdc_lake.dashboard import Query, Rows, load_dashboard
from cdc_lake.samples.northwind.generate import dataset

SPEC = load_dashboard(Path(cdc_lake.__file__).parent / "defs" / "northwind" / "customers.yaml")

Line = tuple[str, int, float, int, float, float]
"""Customer, order, discount, quantity, unit price, revenue."""


def order_lines() -> list[Line]:
    """Return the sample's order lines. SQLite has no decimals; the end-to-end tests compare exact amounts."""
    tables: dict[str, Sequence[tuple[Any, ...]]] = {table.name: table.rows for table in dataset()}
    customers = {order[0]: order[1] for order in tables["orders"]}
    return [
        (str(customers[order]), int(order), discount, quantity, price, quantity * price * (1 - discount))
        for order, _, price, quantity, discount in tables["order_details"]
    ]


def sqlite_query(lines: Sequence[Line]) -> Query:
    """Return a function that runs Athena SQL over these order lines."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE TABLE order_items (customer_id, order_id, discount, quantity, unit_price, revenue)")
    database.executemany("INSERT INTO order_items VALUES (?, ?, ?, ?, ?, ?)", lines)

    def query(sql: str) -> Rows:
        cursor = database.execute(sqlglot.transpile(sql, read="athena", write="sqlite")[0])
        return Rows(tuple(column[0] for column in cursor.description), tuple(cursor.fetchall()))

    return query
