"""The summary of a successful demo, for tests of the commands that print it."""

from __future__ import annotations

from typing import Any

SUMMARY: dict[str, Any] = {
    "stages": {"source": 829, "topic": 829, "raw": 829, "lake": 829, "dataset": 2152},
    "records": {"topic": 900, "raw": 900},
    "tables": {
        "cdc_events": {
            "stages": {"source": 829, "topic": 829, "raw": 829, "lake": 829},
            "records": {"topic": 900, "raw": 900},
        }
    },
    "datasets": {"order_items": 2152},
    "stories": {
        "shipped": {"order_id": 11077, "events": 1, "ok": True},
        "inserted": {"order_id": 11075, "events": 4, "ok": True},
        "deleted": {"order_id": 11075, "items_in_dataset": 0, "ok": True},
    },
    "checks": {"passed": 15, "failed": 0, "faults": {}},
    "seconds": {"load": 1.5, "raw": 2.0},
    "dashboard": "/home/pages/northwind/customers.html",
}
