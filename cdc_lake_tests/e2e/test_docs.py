"""The tutorial's commands, run in one shell without changes."""

from __future__ import annotations

from typing import Any

from cdc_lake_tests.helpers.command_line import CommandLine


def test_the_tutorials_commands_run(demo: dict[str, Any], cli: CommandLine) -> None:
    assert demo["exit_code"] == 0
    commands, output = cli.run_page("tutorial.md")
    assert len(commands) == 7
    # The raw object shows the new date as days since 1970, the lake as a date.
    assert '"shipped_date":10397' in output
    assert "1998-06-20" in output
    assert "supplier_country" in output
