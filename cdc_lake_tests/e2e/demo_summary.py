"""Requirements on the summary of a demo."""

from __future__ import annotations

from typing import Any

COUNTS = {"source": 829, "topic": 829, "raw": 829, "lake": 829, "dataset": 2152}


def assert_demo_is_complete(summary: dict[str, Any]) -> None:
    """Require the counts of every stage, no failed check, and three successful example changes."""
    assert summary["stages"] == COUNTS, summary["stages"]
    assert summary["checks"]["failed"] == 0, summary["checks"]["faults"]
    assert {name: story["ok"] for name, story in summary["stories"].items()} == {
        "shipped": True,
        "inserted": True,
        "deleted": True,
    }, summary["stories"]
