"""`cdc-lake demo pagila` and `pagila_query`: counts, example changes, equal tables, and the commands of their page."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cdc_lake_tests.helpers.command_line import CommandLine


def demo(cli: CommandLine, pipeline: str) -> dict[str, Any]:
    """Run a demo, which must succeed; return its summary."""
    done = cli.run("cdc-lake", "demo", pipeline, "--json", ok=False, timeout=1500)
    assert done.stdout, done.stderr
    summary: dict[str, Any] = json.loads(done.stdout)
    assert all(story["ok"] for story in summary["stories"].values()), summary["stories"]
    assert summary["checks"]["failed"] == 0, summary["checks"]["faults"]
    assert {name: found["clean"] for name, found in summary["verify"].items()} == dict.fromkeys(summary["verify"], True)
    assert done.returncode == 0
    return summary


@pytest.mark.timeout(3600)
def test_the_demos_of_pagila_are_complete_and_their_page_works(cli: CommandLine) -> None:
    stages = ("source", "topic", "raw", "files", "lake")
    summary = demo(cli, "pagila")
    rows = {"film": 1000, "category": 16, "film_category": 1000, "actor": 200, "film_actor": 5462, "language": 6}
    assert {name: found["stages"] for name, found in summary["tables"].items()} == {
        name: dict.fromkeys(stages, count) for name, count in rows.items()
    }
    assert summary["datasets"] == {"film_refined": 1000, "films_by_category": 1000}
    assert list(summary["stories"]) == ["recategorized", "rerated", "rekeyed", "deleted"]
    polled = demo(cli, "pagila_query")
    rows = {"address": 603, "city": 600, "country": 109, "address_with_country": 603, "alt_address": 603}
    assert {name: found["stages"] for name, found in polled["tables"].items()} == {
        name: dict.fromkeys(stages, count) for name, count in rows.items()
    }
    assert polled["stories"]["moved"]["countries_in_refined"] == 110
    assert polled["stories"]["deleted"]["differences_before"] == ["extra 104"]
    cli.run_page("reference/pagila.md")
    for pipeline in ("pagila", "pagila_query"):
        # The sensors of a later `cdc-lake dev` on this stack have nothing to do.
        cli.run("cdc-lake", "reset", pipeline, "--yes")
