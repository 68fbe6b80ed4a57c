"""The pages of the results: plots in an HTML file, rendered as a pipeline's dashboard, and a table in Markdown."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.report.goal_table import MET, markdown
from benchmarks.report.results import Result
from cdc_lake.dashboard import Rows, load_dashboard
from cdc_lake.dashboard.render import render

SPEC = Path(__file__).with_name("page.yaml")
NAMES = ("index.html", "README.md")
COLUMNS = (
    "program", "what", "system", "unit", "size", "value",
    "number", "goal", "measured", "bound", "against", "share", "met", "limiting_factor",
)  # fmt: skip


def write(results: Sequence[Result], folder: Path) -> Path:
    """Write both pages into the folder, and return the HTML page's path."""
    with closing(sqlite3.connect(":memory:")) as database:
        # The table is one of the attached database `benchmarks`, as page.yaml names it.
        database.execute("ATTACH DATABASE ':memory:' AS benchmarks")
        database.execute(f"CREATE TABLE benchmarks.results ({', '.join(COLUMNS)})")
        marks = ", ".join("?" * len(COLUMNS))
        database.executemany(f"INSERT INTO benchmarks.results VALUES ({marks})", _rows(results))  # noqa: S608 - constants

        def query(sql: str) -> Rows:
            cursor = database.execute(sql)
            return Rows(tuple(column[0] for column in cursor.description), tuple(cursor.fetchall()))

        rendered = render(load_dashboard(SPEC), query, datetime.now(UTC), _note(results))
    page, table = (folder / name for name in NAMES)
    page.write_text(rendered.html, encoding="utf-8")
    table.write_text(markdown(results), encoding="utf-8")
    return page


def _rows(results: Sequence[Result]) -> Iterator[tuple[object, ...]]:
    for result in results:
        for each in result.figures:
            nothing = (None,) * 8
            yield (result.program, each.what, each.system, each.unit, each.size, each.value, *nothing)
        for goal in result.goals:
            name, bound = f"{goal.number}: {goal.measure}", None if goal.bound is None else f"{goal.bound:.3g}"
            limit = "" if goal.met else goal.limit
            evaluated = (goal.number, name, goal.measured, bound, goal.against, goal.share, MET[goal.met], limit)
            yield (result.program, None, None, goal.unit, None, None, *evaluated)


def _note(results: Sequence[Result]) -> str:
    machines = {f"{r.machine.cores} cores, {r.machine.processor}" for r in results}
    commits = {result.commit for result in results}
    return f"Commits {', '.join(sorted(commits))}; measured on {'; '.join(sorted(machines))}."
