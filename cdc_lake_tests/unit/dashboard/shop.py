"""A small dashboard of a shop and the results of its queries. Some customer names contain HTML."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from cdc_lake.dashboard import Rows

RENDERED_AT = datetime(2026, 3, 1, 9, 30, tzinfo=UTC)
NOTE = "View shop.sales, at commit 20260301."

TOTAL = "SELECT sum(revenue) AS revenue, count(*) AS sales FROM sales"
BARS = "SELECT name, revenue, running FROM sales"
BAR_VALUES = "SELECT max(name) AS leader, 0.5 AS share FROM sales"
DOTS = "SELECT name, quantity, revenue, infrequent FROM sales"

DECLARED: dict[str, Any] = {
    "title": "Shop",
    "subtitle": "Revenue by customer",
    "database": "shop",
    "dataset": "sales",
    "key_figures": {
        "sql": TOTAL,
        "columns": {
            "revenue": {"format": "money"},
            "sales": {"format": "integer"},
        },
    },
    "visuals": [
        {
            "name": "bars",
            "title": "{leader} leads",
            "message": "{leader} has {share} of {revenue}.",
            "sql": BARS,
            "columns": {
                "name": {"label": "Customer"},
                "revenue": {"format": "money"},
                "running": {"label": "Running share", "format": "percent"},
            },
            "values": {"sql": BAR_VALUES, "columns": {"leader": {}, "share": {"format": "percent"}}},
            "show": 3,
            "chart": {
                "height": {"step": 20},
                "mark": "bar",
                "encoding": {
                    "x": {"field": "revenue", "type": "quantitative"},
                    "y": {"field": "name", "sort": None},
                },
            },
        },
        {
            "name": "dots",
            "title": "Order sizes",
            "message": "Each dot is a customer.",
            "sql": DOTS,
            "columns": {
                "name": {"label": "Customer"},
                "quantity": {"format": "decimal"},
                "revenue": {"format": "money_exact"},
                "infrequent": {"format": "yes_no"},
            },
            "chart": {
                "transform": [{"calculate": "upper(datum.name)", "as": "label"}],
                "mark": "circle",
                "encoding": {
                    "x": {"field": "quantity", "type": "quantitative"},
                    "y": {"field": "revenue", "type": "quantitative"},
                    "color": {"field": "infrequent"},
                    "detail": {"field": "label"},
                },
            },
        },
    ],
}

RESULTS = {
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
    BAR_VALUES: Rows(("leader", "share"), (("<script>alert('x')</script>", 0.7295),)),
    DOTS: Rows(
        ("name", "quantity", "revenue", "infrequent"),
        (
            ("<img src=x onerror=alert(1)>", 10.5, Decimal("900.1250"), False),
            ("B & Sons", 20.0, Decimal("800.0000"), True),
            ("Delta", 15.25, Decimal("700.0000"), True),
            ("Echo", 5.0, None, True),
        ),
    ),
}


def query(sql: str) -> Rows:
    """Return the result of one of the queries."""
    return RESULTS[sql]
