"""`cdc-lake verify PIPELINE`: compare source and lake row by row."""

from __future__ import annotations

import dataclasses
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from cdc_lake.cli.printable import json_text, printable

if TYPE_CHECKING:
    from rich.table import Table

    from cdc_lake.contract.errors import TablesNotComparedError
    from cdc_lake.jobs.verify import Difference, VerifyReport

_WIDE = 200  # width of a table in a pipe or file


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(verify)


def verify(
    pipeline: Annotated[str, typer.Argument(help="The pipeline's name.")],
    table: Annotated[list[str] | None, typer.Option("--table", help="Verify only this table; can be repeated.")] = None,
    apply: Annotated[
        bool, typer.Option("--apply", help="Land and apply pending records instead of waiting for the sensors.")
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(
            min=1,
            help="Seconds to wait, twice for the stream and then for the lake, until they have all changes before the "
            "compared snapshot.",
        ),
    ] = 300,
    limit: Annotated[int, typer.Option(min=1, help="Maximum number of listed differences per table.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Compare source and lake row by row; the source may be written meanwhile.

    Exit code 0 if all tables are equal; 1 if a table differs or a key stayed pending in too many runs; 2 if a table
    could not be compared.
    """
    from rich.console import Console

    from cdc_lake.contract.table import pending_counts
    from cdc_lake.pipeline.loading import load

    try:
        found, failure = _compared(pipeline, table, apply, timeout, limit)
    except Exception as error:
        error.exit_code = 2  # type: ignore[attr-defined]  # read by app.main()
        raise
    passed = all(report.passed for report in found.values())
    if as_json:
        tables = {name: {"clean": report.passed, **dataclasses.asdict(report)} for name, report in found.items()}
        reasons = {} if failure is None else failure.reasons
        summary = {"clean": passed and not reasons, "tables": tables, "not_compared": reasons}
        typer.echo(json_text({"pipeline": pipeline, **summary}, indent=1))
    else:
        console = Console() if sys.stdout.isatty() else Console(width=_WIDE)
        late = "the lake has not applied their newest changes"
        if load(pipeline).polled:
            late = "they changed after the last poll"
        if found:
            console.print(_counts(found))
        for name, report in found.items():
            if report.omitted_columns:
                omitted = printable(", ".join(report.omitted_columns))
                console.print(f"{name}: columns that are not captured: {omitted}", markup=False, highlight=False)
            if report.pending:
                console.print(
                    f"{name}: not compared: {report.pending:,} of {report.pending + report.compared:,} keys, because "
                    f"{late}; pending in each of the last "
                    f"{pending_counts.MAX_PENDING_RUNS} runs: {len(report.never_compared):,}"
                )
            if report.differences:
                console.print(_differences(name, report))
    if failure is not None:
        failure.exit_code = 2 if passed else 1  # type: ignore[attr-defined]  # read by app.main()
        raise failure
    if not passed:
        raise typer.Exit(1)


def _compared(
    pipeline: str, table: list[str] | None, apply: bool, timeout: float, limit: int
) -> tuple[dict[str, VerifyReport], TablesNotComparedError | None]:
    """Verify the tables; return the reports by lake table, and the error of the tables without a report.

    Raises ContractError for an unknown table, or if no table can be compared.
    """
    from rich.console import Console

    from cdc_lake.contract.errors import ContractError, TablesNotComparedError
    from cdc_lake.pipeline.loading import load
    from cdc_lake.pipeline.operations.verification import VerifySystems, verify_tables
    from cdc_lake.profile import resolved, spark

    loaded = load(pipeline)
    by_name = {each.name: each.in_targets for each in loaded.tables}
    by_name |= {each.lake_table: (each,) for each in loaded.lake_tables if each.lake_table != each.name}
    if unknown := sorted(set(table or ()) - by_name.keys()):
        raise ContractError(
            f"Cannot verify {', '.join(unknown)}: pipeline {pipeline} has no such table. Choose from "
            f"{', '.join(by_name)}."
        )
    resources = resolved()
    systems = VerifySystems(
        loaded.source_postgres(resources["postgres"]),
        resources["kafka"],
        resources["connect"],
        resources["store"],
        spark(),
    )
    progress = Console(stderr=True)
    found: dict[str, VerifyReport] = {}
    with progress.status("starting") as status:
        try:
            for one, report in verify_tables(
                loaded,
                list({one.lake_table: one for name in table or by_name for one in by_name[name]}.values()),
                systems,
                seconds=timeout,
                apply=apply,
                limit=limit,
                show=status.update if progress.is_terminal else lambda what: progress.print(what, style="dim"),
            ):
                found[one.lake_table] = report
        except TablesNotComparedError as failure:
            return found, failure
    return found, None


def _counts(found: dict[str, VerifyReport]) -> Table:
    from rich.table import Column, Table

    numbers = (
        "source rows",
        "lake rows",
        "compared",
        "resolved",
        "pending",
        "missing",
        "extra",
        "different",
        "doubled",
        "seconds",
    )
    table = Table(
        Column("table", overflow="fold"),
        *(Column(name, justify="right", overflow="fold") for name in numbers),
        "verdict",
    )
    for name, report in found.items():
        values = (getattr(report, number.replace(" ", "_")) for number in numbers[:-1])
        table.add_row(
            name, *(f"{value:,}" for value in values), f"{sum(report.seconds.values()):.1f}", _verdict(report)
        )
    return table


def _verdict(report: VerifyReport) -> str:
    if not report.clean:
        return "[red]not equal[/red]"
    return "[green]equal[/green]" if report.passed else "[red]keys not compared[/red]"


def _differences(name: str, report: VerifyReport) -> Table:
    from rich.table import Column, Table
    from rich.text import Text

    total = report.missing + report.extra + report.different + report.doubled
    title = f"{name}: {len(report.differences)} of {total:,} keys that differ"
    folded = [Column(header, overflow="fold") for header in ("key", "what", "column", "source", "lake")]
    table = Table(*folded, title=title, title_justify="left")
    for one in report.differences:
        key = ", ".join(f"{column}={value}" for column, value in one.key.items())
        lines = list(one.columns.items()) or [("", ("", ""))]
        for number, (column, (ours, theirs)) in enumerate(lines):
            head = (key, _difference_text(one)) if number == 0 else ("", "")
            table.add_row(*(Text(printable(each)) for each in (*head, column, _shown(ours), _shown(theirs))))
    return table


def _difference_text(one: Difference) -> str:
    what = {
        "missing": "missing in the lake",
        "extra": "in the lake only",
        "different": "different",
        "doubled": "more than one row",
    }[one.kind]
    return what if one.compared_with == "source" else f"{what} (changed since; compared with the raw events)"


def _shown(value: str | None) -> str:
    return "NULL" if value is None else value
