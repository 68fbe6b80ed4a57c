"""Run a sample pipeline from an empty database to the dashboard; used by `demo` and `aws smoke`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from cdc_lake.cli.printable import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from cdc_lake.demo.demos import UserRows
    from cdc_lake.demo.journal import Journal


class DemoPipeline(StrEnum):
    """The pipelines that have a demo."""

    NORTHWIND = "northwind"
    MOMA = "moma"
    PAGILA = "pagila"
    PAGILA_QUERY = "pagila_query"


SMOKE_JOURNAL = "smoke.json"
"""The journal file of a run of Northwind in an AWS account, in the state folder."""
_JOURNALS: Mapping[str, str] = {
    DemoPipeline.NORTHWIND: "demo.json",
    DemoPipeline.MOMA: "demo-moma.json",
    DemoPipeline.PAGILA: "demo-pagila.json",
    DemoPipeline.PAGILA_QUERY: "demo-pagila_query.json",
}


def journal(pipeline: str) -> str:
    """Return the journal file of a pipeline's demo on the local stack, in the state folder."""
    return _JOURNALS[pipeline]


def journal_in(profile: str, pipeline: str) -> str | None:
    """Return the journal file of a pipeline's demo in a profile; None if it has no demo there."""
    if profile == "aws":
        return SMOKE_JOURNAL if pipeline == DemoPipeline.NORTHWIND else None
    return _JOURNALS.get(pipeline)


def succeeded(summary: Mapping[str, Any]) -> bool:
    """Return whether a demo succeeded.

    No check failed, each example change is ok, each table has equal counts in all stages, and verified tables equal the
    source.
    """
    equal = all(len(set(table["stages"].values())) == 1 for table in summary["tables"].values())
    stories = all(story["ok"] for story in summary["stories"].values())
    verified = all(found["clean"] for found in summary.get("verify", {}).values())
    return equal and stories and verified and not summary["checks"]["failed"]


def run(
    console: Console,
    pipeline: str,
    given: UserRows,
    journal: Journal,
    resume_commands: Sequence[str],
) -> dict[str, Any]:
    """Run the steps with the profile's resources and return the summary; print `resume_commands` if a step fails."""
    from cdc_lake.demo.demos import DEMOS
    from cdc_lake.demo.graph import Graph
    from cdc_lake.demo.steps import Demo
    from cdc_lake.instance import instance
    from cdc_lake.pipeline.loading import load
    from cdc_lake.profile import resolved

    def graph() -> Graph:
        from cdc_lake.definitions import defs

        return Graph(pipeline, defs(), dagster)

    with instance() as dagster:
        try:
            lines, sample = StepPrinter(console), DEMOS[pipeline]
            return Demo(load(pipeline), resolved(), graph, journal, lines, given, sample).run()
        except (Exception, KeyboardInterrupt) as error:
            stopped = isinstance(error, KeyboardInterrupt)
            what = "The demo was interrupted. Continue" if stopped else "A step failed. Fix the cause, then continue"
            console.print(f"[yellow]{what} with:[/]")
            for command in resume_commands:
                console.print(f"  {command}", highlight=False, soft_wrap=True)
            raise


class StepPrinter:
    """Print one line for each step."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def step(self, name: str, what: str) -> None:
        self._console.print(f"  {name:<16} {what} …", end="", highlight=False)

    def done(self, name: str, what: str) -> None:  # noqa: ARG002 - step() has printed the name
        self._console.print(f" {what}", highlight=False)


def show(console: Console, summary: Mapping[str, Any], title: str) -> None:
    """Print the summary as text; `title` is the sample's name."""
    from rich.markup import escape

    console.print(_counts(summary, f"\n{title}, before the changes"))
    for name, story in summary["stories"].items():
        mark = "[green]✓[/]" if story["ok"] else "[red]✗[/]"
        line = escape(printable(_change_line(name, story)))
        console.print(f"{mark} {line}", highlight=False, soft_wrap=True)
    _show_verified(console, summary.get("verify", {}))
    checks = summary["checks"]
    console.print(f"checks: {checks['passed']} passed, {checks['failed']} failed", highlight=False)
    for name, why in checks["faults"].items():
        console.print(f"[red]✗[/] {escape(printable(f'{name}: {why}'))}", highlight=False, soft_wrap=True)
    console.print(
        f"seconds: {', '.join(f'{k} {v:g}' for k, v in summary['seconds'].items())}", highlight=False, soft_wrap=True
    )
    if summary["dashboard"]:
        console.print(f"dashboard: {summary['dashboard']}", highlight=False, soft_wrap=True)


def _show_verified(console: Console, verified: Mapping[str, Mapping[str, Any]]) -> None:
    """Print for each lake table whether it equals the source."""
    for name, found in verified.items():
        verdict = "[green]equal[/]" if found["clean"] else "[red]not equal[/]"
        console.print(f"verify: {name}: {found['compared']:,} rows compared, {verdict}")


def _counts(summary: Mapping[str, Any], title: str) -> Table:
    """Return a table with a row for each stage and dataset, and a column for each table."""
    from rich.table import Table

    tables, seconds = summary["tables"], summary["seconds"]
    single = len(tables) == 1
    out = Table("stage", *(["rows or changes"] if single else tables), "seconds", title=title)
    before_the_lake = ("source", "topic", "raw")
    targets = [stage for stage in next(iter(tables.values()))["stages"] if stage not in before_the_lake]
    for stage in (*before_the_lake, *targets):
        name = "lake" if stage in targets else stage
        shown = f"{seconds.get(name, 0):.1f}" if stage not in targets[1:] else ""
        out.add_row(
            stage if single else f"{name} {stage}" if stage in targets else stage,
            *(_rows(table["stages"][stage], table["records"].get(stage)) for table in tables.values()),
            shown,
        )
    for place, (name, rows) in enumerate(summary["datasets"].items()):
        blank = [""] * (len(tables) - 1)
        label = "dataset" if len(summary["datasets"]) == 1 else f"dataset {name}"
        out.add_row(label, f"{rows:,}", *blank, "" if place else f"{seconds.get('dataset', 0):.1f}")
    return out


def _rows(count: int, records: int | None) -> str:
    return f"{count:,}" if records in (None, count) else f"{count:,} ({records:,} records)"


def _change_line(name: str, story: Mapping[str, Any]) -> str:
    """Format an example change as one line: the row's id (the first value), then the other values except mappings."""
    (key, row_id), *facts = ((key, value) for key, value in story.items() if key != "ok")
    text = ", ".join(f"{key.replace('_', ' ')} {_text(value)}" for key, value in facts if not isinstance(value, dict))
    return f"{key.removesuffix('_id')} {row_id} {name}: {text}"


def _text(value: object) -> str:
    if not isinstance(value, list):
        return str(value)
    return str(value[0]) if len(value) == 1 else f"({', '.join(map(str, value))})"
