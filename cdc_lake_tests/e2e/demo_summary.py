"""A demo's summary, and what it must contain."""

from __future__ import annotations

import json
from typing import Any

from cdc_lake_tests.helpers.command_line import CommandLine

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


def run_demo(cli: CommandLine, pipeline: str) -> dict[str, Any]:
    """Run a pipeline's demo, and return its summary. No story, check or comparison may have failed."""
    done = cli.run("cdc-lake", "demo", pipeline, "--json", ok=False, timeout=1500)
    assert done.stdout, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    assert all(story["ok"] for story in summary["stories"].values()), summary["stories"]
    assert summary["checks"]["failed"] == 0, summary["checks"]["faults"]
    for name, found in summary["verify"].items():
        assert found["clean"], name
        assert found["compared"] == found["source_rows"] > 0, (name, found)
    assert done.returncode == 0, done.stderr
    return summary


def rows_by_table(summary: dict[str, Any], *stages: str) -> dict[str, int]:
    """Return the rows of each table, whose number must be the same in all of these stages; it has no others."""
    rows = {}
    for name, found in summary["tables"].items():
        count = found["stages"][stages[0]]
        assert found["stages"] == dict.fromkeys(stages, count), (name, found["stages"])
        rows[name] = count
    return rows
