"""The table of the goals: in the terminal, and as Markdown beside the results."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.table import Table

from benchmarks.goals import GoalResult, unmeasured
from benchmarks.report.results import Result

HEADINGS = ("goal", "measured", "bound", "met", "limiting factor, or why it is not evaluated")
MET = {True: "yes", False: "no", None: "not evaluated"}
REPORTED = "reported only"


def cells(goal: GoalResult) -> tuple[str, ...]:
    """Return the cells of one goal's row."""
    measured = "not measured" if goal.measured is None else f"{_number(goal.measured)} {goal.unit}"
    bound = "" if goal.bound is None else _number(goal.bound)
    if goal.against:
        bound += f" = {goal.against}"
    met = REPORTED if goal.reported else MET[goal.met]
    return f"{goal.number}: {goal.measure}", measured, bound, met, "" if goal.met else goal.limit


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 1_000 else f"{value:.3g}"


def ordered(results: Iterable[Result]) -> list[GoalResult]:
    """Return all goals by number: those of the results, and those that no result has."""
    known = [goal for result in results for goal in result.goals]
    missing = unmeasured((goal.number, goal.measure) for goal in known)
    return sorted((*known, *missing), key=lambda goal: goal.number)


def terminal(goals: Iterable[GoalResult]) -> Table:
    """Return the table for the terminal."""
    table = Table(*HEADINGS)
    for goal in goals:
        table.add_row(*cells(goal), style={True: "green", False: "red", None: ""}[goal.met])
    return table


def markdown(results: Sequence[Result]) -> str:
    """Return the page of the results."""
    rows = [HEADINGS, ("---",) * len(HEADINGS), *(cells(goal) for goal in ordered(results))]
    headings = ("program", "arguments", "measured at", "commit", "seconds", "machine", "load before")
    runs = [headings, ("---",) * len(headings)]
    for result in results:
        at = result.machine
        machine = f"{at.cores} cores, {at.memory_gb:g} GB, {at.processor}"
        when = f"{result.measured_at:%Y-%m-%d %H:%M} UTC"
        arguments = ", ".join(result.arguments)
        runs.append((result.program, arguments, when, result.commit, f"{result.seconds:.0f}", machine, f"{at.load:g}"))
    return (
        "\n\n".join(
            (
                "# Results",
                "Written by `make bench` ([how to repeat it](../README.md)), with plots in `index.html`.",
                _lines(rows),
                "## Runs",
                _lines(runs),
            )
        )
        + "\n"
    )


def _lines(rows: Iterable[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
