"""Run Northwind from an empty database to the dashboard, for `demo` and `aws smoke`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cdc_lake.cli.printable import printable

PIPELINE = "northwind"
DEMO, SMOKE = "demo.json", "smoke.json"
"""Journal files in the state folder: of the demo on the local stack, and of the run in an AWS account."""
JOURNALS = (DEMO, SMOKE)


def went_well(summary: dict[str, Any]) -> bool:
    """Whether no check failed, each story is ok, and the stages before the dataset have equal counts."""
    counts = {summary["stages"][stage] for stage in ("source", "topic", "raw", "lake")}
    stories = all(story["ok"] for story in summary["stories"].values())
    return len(counts) == 1 and stories and not summary["checks"]["failed"]


def run(console: Any, sql_dir: Path | None, journal: Any, resume_commands: Sequence[str]) -> dict[str, Any]:  # noqa: ANN401 - imported late
    """Run the steps with the profile's resources; `resume_commands` are printed if one fails."""
    from cdc_lake.demo.graph import Graph
    from cdc_lake.demo.steps import Demo
    from cdc_lake.instance import instance
    from cdc_lake.pipeline.loading import load
    from cdc_lake.profile import resolved

    def graph() -> Graph:
        from cdc_lake.definitions import defs

        return Graph(PIPELINE, defs(), dagster)

    with instance() as dagster:
        try:
            return Demo(load(PIPELINE), resolved(), graph, journal, Lines(console), sql_dir).run()
        except Exception:
            console.print("[yellow]A step failed. Fix the cause, then continue with:[/]")
            for command in resume_commands:
                console.print(f"  {command}", highlight=False)
            raise


class Lines:
    """Prints one line for each step."""

    def __init__(self, console: Any) -> None:  # noqa: ANN401 - rich is imported late
        self._console = console

    def step(self, name: str, what: str) -> None:
        self._console.print(f"  {name:<16} {what} …", end="", highlight=False)

    def done(self, name: str, what: str) -> None:  # noqa: ARG002 - the line has the name already
        self._console.print(f" {what}", highlight=False)


def show(console: Any, summary: dict[str, Any]) -> None:  # noqa: ANN401 - rich is imported late
    """Print the summary as text."""
    from rich.markup import escape
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
        line = escape(printable(f"order {story['order_id']} {name}: {facts}"))
        console.print(f"{mark} {line}", highlight=False, soft_wrap=True)
    checks = summary["checks"]
    console.print(f"checks: {checks['passed']} passed, {checks['failed']} failed", highlight=False)
    for name, why in checks["faults"].items():
        console.print(f"[red]✗[/] {escape(printable(f'{name}: {why}'))}", highlight=False, soft_wrap=True)
    console.print(
        f"seconds: {', '.join(f'{k} {v:g}' for k, v in summary['seconds'].items())}", highlight=False, soft_wrap=True
    )
    console.print(f"dashboard: {summary['dashboard']}", highlight=False, soft_wrap=True)
