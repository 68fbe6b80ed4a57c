"""`cdc-lake demo`: the whole pipeline on this machine, from nothing to a dashboard."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Annotated, Any

import typer

PIPELINE = "northwind"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(demo)


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
    file = find_home().path / "demo.json"
    with alone(file):
        # Before anything else: what is cut off from here on must not resume the demo before it.
        journal = Journal(file, resume)
        seconds = prepare(console)
        summary = _run(console, sql_dir, journal)
    summary["seconds"] = {**seconds, **summary["seconds"], "total": round(time.monotonic() - started, 1)}
    if as_json:
        typer.echo(json.dumps(summary))
    else:
        _print(console, summary)
    if not _well(summary):
        raise typer.Exit(1)


def _well(summary: dict[str, Any]) -> bool:
    """Whether no check failed, each story ended well, and the stages before the dataset hold equally much."""
    counts = {summary["stages"][stage] for stage in ("source", "topic", "raw", "lake")}
    stories = all(story["ok"] for story in summary["stories"].values())
    return len(counts) == 1 and stories and not summary["checks"]["failed"]


def _run(console: Any, sql_dir: Path | None, journal: Any) -> dict[str, Any]:  # noqa: ANN401 - rich is imported late
    from cdc_lake.demo.graph import Graph
    from cdc_lake.demo.steps import Demo
    from cdc_lake.instance import instance
    from cdc_lake.pipeline.load import load
    from cdc_lake.profile import resolved

    def graph() -> Graph:
        from cdc_lake.definitions import defs

        return Graph(PIPELINE, defs(), dagster)

    with instance() as dagster:
        try:
            return Demo(load(PIPELINE), resolved(), graph, journal, _Lines(console), sql_dir).run()
        except Exception:
            console.print("[yellow]The demo stopped. Once the cause is mended (`cdc-lake up` starts what is down):[/]")
            console.print("  cdc-lake demo --resume", highlight=False)
            raise


class _Lines:
    """A line a step."""

    def __init__(self, console: Any) -> None:  # noqa: ANN401 - rich is imported late
        self._console = console

    def step(self, name: str, what: str) -> None:
        self._console.print(f"  {name:<16} {what} …", end="", highlight=False)

    def done(self, name: str, what: str) -> None:  # noqa: ARG002 - the line says the name already
        self._console.print(f" {what}", highlight=False)


def _print(console: Any, summary: dict[str, Any]) -> None:  # noqa: ANN401 - rich is imported late
    from rich.table import Table

    table = Table("stage", "rows or changes", "seconds", title="\nNorthwind, before the stories")
    for stage, count in summary["stages"].items():
        records = summary["records"].get(stage, count)
        repeated = f" ({records:,} records)" if records != count else ""
        table.add_row(stage, f"{count:,}{repeated}", f"{summary['seconds'].get(stage, 0):.1f}")
    console.print(table)
    for name, story in summary["stories"].items():
        mark = "[green]✓[/]" if story["ok"] else "[red]✗[/]"
        facts = ", ".join(
            f"{key.replace('_', ' ')} {value}" for key, value in story.items() if key not in {"ok", "order_id"}
        )
        console.print(f"{mark} order {story['order_id']} {name}: {facts}", highlight=False, soft_wrap=True)
    checks = summary["checks"]
    console.print(f"checks: {checks['passed']} passed, {checks['failed']} failed", highlight=False)
    for name, why in checks["faults"].items():
        console.print(f"[red]✗[/] {name}: {why}", highlight=False, soft_wrap=True)
    console.print(
        f"seconds: {', '.join(f'{k} {v:g}' for k, v in summary['seconds'].items())}", highlight=False, soft_wrap=True
    )
    console.print(f"dashboard: {summary['dashboard']}", highlight=False, soft_wrap=True)
    next_steps = 'next: cdc-lake dev (the graph in Dagster\'s UI), cdc-lake query "SELECT * FROM order_items LIMIT 5"'
    console.print(next_steps, soft_wrap=True)
