"""`cdc-lake demo`: the whole pipeline on this machine, from nothing to a dashboard."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated

import typer

from cdc_lake.cli.local_only import local_only
from cdc_lake.cli.northwind import DEMO, run, show, went_well

_AGAIN = ("cdc-lake up    (where something of the stack is down)", "cdc-lake demo --resume")
_NEXT = 'next: cdc-lake dev (the graph in Dagster\'s UI), cdc-lake query "SELECT * FROM order_items LIMIT 5"'


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(local_only(demo, "`cdc-lake aws smoke` runs Northwind in an account."))


def demo(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on standard output.")] = False,
    sql_dir: Annotated[
        Path | None, typer.Option(exists=True, file_okay=False, help="Load these SQL scripts instead.")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Go on with a demo that was cut off.")] = False,
) -> None:
    """Start everything, load Northwind, materialise the graph, tell the two stories, and count.

    Exit code 1 where a count, a story or a check is not as it has to be, or another demo runs on this state folder.
    """
    from rich.console import Console

    from cdc_lake.demo.journal import Journal, alone
    from infra.local.home import find_home
    from infra.local.preparation import prepare

    console = Console(stderr=as_json)
    started = time.monotonic()
    file = find_home().path / DEMO
    with alone(file):
        # Before anything else: what is cut off from here on must not resume the demo before it.
        journal = Journal(file, resume)
        seconds = prepare(console)
        summary = run(console, sql_dir, journal, _AGAIN)
    summary["seconds"] = {**seconds, **summary["seconds"], "total": round(time.monotonic() - started, 1)}
    if as_json:
        typer.echo(json.dumps(summary))
    else:
        show(console, summary)
        console.print(_NEXT, soft_wrap=True)
    if not went_well(summary):
        raise typer.Exit(1)
