"""The declaration of a dashboard of the shop."""

from __future__ import annotations

SALES = {
    "title": "Sales",
    "subtitle": "Who buys",
    "database": "shop_lake",
    "dataset": "sales",
    "visuals": [
        {
            "name": "bars",
            "title": "Revenue",
            "message": "By customer.",
            "sql": "SELECT name, revenue FROM sales ORDER BY name",
            "columns": {
                "name": {"label": "Customer"},
                "revenue": {"format": "integer"},
            },
            "chart": {"mark": "bar", "encoding": {"x": {"field": "revenue"}, "y": {"field": "name"}}},
        }
    ],
}
