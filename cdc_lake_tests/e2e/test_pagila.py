"""`cdc-lake demo pagila`: counts, example changes, equal tables, and the commands of its section of the page."""

from __future__ import annotations

import pytest

from cdc_lake_tests.e2e.demo_summary import rows_by_table, run_demo
from cdc_lake_tests.helpers.command_line import CommandLine


@pytest.mark.timeout(1800)
def test_the_demo_of_pagila_is_complete_and_its_page_works(cli: CommandLine) -> None:
    summary = run_demo(cli, "pagila")
    assert rows_by_table(summary, "source", "topic", "raw", "files", "lake") == {
        "film": 1000,
        "category": 16,
        "film_category": 1000,
        "actor": 200,
        "film_actor": 5462,
        "language": 6,
    }
    assert summary["datasets"] == {"film_refined": 1000, "films_by_category": 1000}
    assert list(summary["stories"]) == ["recategorized", "rerated", "rekeyed", "deleted"]
    cli.run_page("reference/pagila.md", section="From the log")
    # The sensors of a later `cdc-lake dev` on this stack have nothing to do.
    cli.run("cdc-lake", "reset", "pagila", "--yes")
