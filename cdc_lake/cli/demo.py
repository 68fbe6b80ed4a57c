"""`cdc-lake demo`: run the sample pipeline on this machine, from an empty database to the dashboard."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from cdc_lake.cli.local_only import local_only
from cdc_lake.cli.northwind import DEMO, run, show, went_well

_RESUME_COMMANDS = ("cdc-lake up    (if an engine is not running)", "cdc-lake demo --resume")
_NEXT = 'next: cdc-lake dev (the graph in Dagster\'s UI), cdc-lake query "SELECT * FROM order_items LIMIT 5"'


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(local_only(demo, "`cdc-lake aws smoke` runs Northwind in an account."))


def demo(
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
    sql_dir: Annotated[
        Path | None,
        typer.Option(
            exists=True, file_okay=False, help="Load the SQL scripts of this folder instead of generated data."
        ),
    ] = None,
    resume: Annotated[bool, typer.Option(help="Continue an interrupted demo.")] = False,
) -> None:
    """Start the stack, load Northwind, materialise the graph, change three orders, and count the rows.

    Exit code 1 if a count, a change or a check fails, or if another demo runs on this state folder.
    """
    from rich.console import Console

    from cdc_lake.demo.journal import Journal, exclusive
    from infra.local.preparation import prepare
    from infra.local.stack.state_folder import find_home

    console = Console(stderr=as_json)
    started = time.monotonic()
    file = find_home().path / DEMO
    with exclusive(file):
        # Created first: `--resume` after an interruption must not continue an earlier demo.
        journal = Journal(file, resume)
        seconds = prepare(console)
        summary = run(console, sql_dir, journal, _RESUME_COMMANDS)
    summary["seconds"] = {**seconds, **summary["seconds"], "total": round(time.monotonic() - started, 1)}
    if as_json:
        typer.echo(json.dumps(summary))
    else:
        show(console, summary)
        console.print(_NEXT, soft_wrap=True)
    if not went_well(summary):
        raise typer.Exit(1)
