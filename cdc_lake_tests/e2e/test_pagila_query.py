"""`cdc-lake demo pagila_query`: counts, example changes, equal tables, and the commands of its section of the page."""

from __future__ import annotations

import pytest

from cdc_lake_tests.e2e.demo_summary import rows_by_table, run_demo
from cdc_lake_tests.helpers.command_line import CommandLine


@pytest.mark.timeout(1800)
def test_the_demo_of_polled_pagila_is_complete_and_its_page_works(cli: CommandLine) -> None:
    summary = run_demo(cli, "pagila_query")
    assert rows_by_table(summary, "source", "topic", "raw", "files", "lake") == {
        "address": 603,
        "city": 600,
        "country": 109,
        "address_with_country": 603,
        "alt_address": 603,
    }
    assert summary["stories"]["moved"]["countries_in_refined"] == 110
    assert summary["stories"]["deleted"]["differences_before"] == ["extra 104"]
    cli.run_page("reference/pagila.md", section="By polling")
    # The sensors of a later `cdc-lake dev` on this stack have nothing to do.
    cli.run("cdc-lake", "reset", "pagila_query", "--yes")
