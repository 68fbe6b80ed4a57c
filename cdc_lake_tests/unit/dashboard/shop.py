"""A small dashboard of a shop, and what its database answers. Some of its customers have hostile names."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from cdc_lake.dashboard import Rows

MADE = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
NOTE = "View shop.sales, at commit 20260301."

TOTAL = "SELECT sum(revenue) AS revenue, count(*) AS sales FROM sales"
BARS = "SELECT name, revenue, running FROM sales"
BAR_FIGURES = "SELECT max(name) AS leader, 0.5 AS share FROM sales"
DOTS = "SELECT name, quantity, revenue, orders, seldom FROM sales"

DECLARED: dict[str, Any] = {
    "title": "Shop",
    "subtitle": "Who buys",
    "database": "shop",
    "dataset": "sales",
    "headlines": [
        {"name": "revenue", "label": "Revenue", "sql": TOTAL, "column": "revenue", "format": "money"},
        {"name": "sales", "label": "Sales", "sql": TOTAL, "column": "sales", "format": "integer"},
    ],
    "visuals": [
        {
            "name": "bars",
            "title": "Revenue by customer",
            "message": "{leader} has {share} of {revenue}.",
            "sql": BARS,
            "columns": {
                "name": {"label": "Customer", "format": "text"},
                "revenue": {"label": "Revenue", "format": "money"},
                "running": {"label": "Running share", "format": "percent"},
            },
            "figures": {"sql": BAR_FIGURES, "formats": {"leader": "text", "share": "percent"}},
            "chart": {
                "kind": "bar",
                "x": "revenue",
                "y": "name",
                "tooltip": ["name", "revenue"],
                "highlight": {"top": 1, "by": "revenue"},
                "show": 3,
                "running": {"column": "running", "mark": 2, "note": "The first two have {share}."},
            },
        },
        {
            "name": "dots",
            "title": "Habits",
            "message": "Who orders seldom.",
            "sql": DOTS,
            "columns": {
                "name": {"label": "Customer", "format": "text"},
                "quantity": {"label": "Quantity", "format": "decimal"},
                "revenue": {"label": "Revenue", "format": "money_exact"},
                "orders": {"label": "Orders", "format": "integer"},
                "seldom": {"label": "Seldom", "format": "yes_no"},
            },
            "chart": {
                "kind": "scatter",
                "x": "quantity",
                "y": "revenue",
                "size": "orders",
                "label": "name",
                "tooltip": ["name", "revenue", "orders"],
                "highlight": {"top": 2, "by": "revenue", "where": "seldom"},
                "named": {"top": 1, "by": "orders"},
            },
        },
    ],
}

ANSWERS = {
    TOTAL: Rows(("revenue", "sales"), ((Decimal("1234567.8950"), 4),)),
    BARS: Rows(
        ("name", "revenue", "running"),
        (
            ("<script>alert('x')</script>", Decimal("900000.1234"), 0.729),
            ("B & Sons", Decimal("200000.0000"), 0.891),
            ("</script>\u2028Corp", Decimal("100000.7716"), 0.972),
            ("Delta", Decimal("34567.0000"), 1.0),
        ),
    ),
    BAR_FIGURES: Rows(("leader", "share"), (("<script>alert('x')</script>", 0.7295),)),
    DOTS: Rows(
        ("name", "quantity", "revenue", "orders", "seldom"),
        (
            ("<img src=x onerror=alert(1)>", 10.5, Decimal("900.1250"), 30, False),
            ("B & Sons", 20.0, Decimal("800.0000"), 2, True),
            ("Delta", 15.25, Decimal("700.0000"), 1, True),
            ("Echo", 5.0, None, 1, True),
        ),
    ),
}


def answer(sql: str) -> Rows:
    """What the fake database says."""
    return ANSWERS[sql]
