"""`cdc-lake load`: load a sample database, generated or from files, into any PostgreSQL server."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.errors import ConnectError, LoadError
from cdc_lake.samples.load_report import LoadReport
from cdc_lake.samples.loadable import SAMPLES, LoadableSample
from cdc_lake.samples.sample_tables import Progress as Show

_PORT, _USER = 5432, "postgres"


class Sample(StrEnum):
    """The samples that `cdc-lake load` can load."""

    NORTHWIND = "northwind"
    MOMA = "moma"
    PAGILA = "pagila"


def register(app: typer.Typer) -> None:
    """Add the command `load` to the application."""
    # -h is the host, as in psql, so only --help prints help.
    app.command("load", context_settings={"help_option_names": ["--help"]})(load_command)


def load_command(
    host: Annotated[
        str | None,
        typer.Option("--host", "-h", help="The server's name or address.", show_default="the profile's"),
    ] = None,
    port: Annotated[
        int | None,
        typer.Option("--port", "-p", min=1, max=65535, help="The port of --host.", show_default=str(_PORT)),
    ] = None,
    dbname: Annotated[
        str | None, typer.Option("--dbname", "-d", help="The database.", show_default="devdb, or the sample's own")
    ] = None,
    user: Annotated[
        str | None,
        typer.Option(
            "--user", "-u", help="A user of --host who may create a schema and a publication.", show_default=_USER
        ),
    ] = None,
    sample: Annotated[Sample, typer.Option("--sample", help="The sample to load.")] = Sample.NORTHWIND,
    sql_dir: Annotated[
        Path | None,
        typer.Option("--sql-dir", help="Load the .sql files of this folder, in name order, instead of generated data."),
    ] = None,
    csv: Annotated[
        list[str] | None,
        typer.Option("--csv", metavar="TABLE=FILE", help="Only with moma: load the museum's file; can be repeated."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Load a sample. Northwind: schema datalake with 14 tables, outbox, publication. MoMA: art. Pagila: film rental.

    Without --host, the profile's source and login are used: in the local profile the stack's server. With --host, the
    password is read from PGPASSWORD or the terminal. The load is one transaction; the databases of MoMA and Pagila are
    created if they are missing.
    """
    console, errors = Console(), Console(stderr=True)
    chosen = SAMPLES[sample]
    if sql_dir is not None and not chosen.scripts:
        others = " and ".join(name for name, each in SAMPLES.items() if each.scripts)
        raise typer.BadParameter(f"--sql-dir cannot be used with {sample}, only with {others}. Use --csv instead.")
    if csv and not chosen.files:
        [other] = (name for name, each in SAMPLES.items() if each.files)
        raise typer.BadParameter(f"--csv can be used with {other} only. Add --sample {other}.")
    files = files_by_table(csv or [])
    hint = ""
    if host is None:
        if port is not None or user is not None:
            raise typer.BadParameter("--port and --user belong to --host. Add --host, or leave them out.")
        parameters, hint = _from_profile()
        if chosen.own_database or dbname is not None:
            parameters = replace(parameters, dbname=dbname or chosen.database)
    else:
        parameters = _from_options(host, port or _PORT, dbname or chosen.database, user or _USER)
    source = f"the scripts in {sql_dir}" if sql_dir else ", ".join(map(str, files.values())) or "generated data"
    if not yes:
        typer.confirm(f"Create {chosen.creates} in {parameters} from {source}?", abort=True)
    try:
        report = _load_with_progress(errors, partial(chosen.load, parameters, sql_dir, files))
    except LoadError as error:
        advice = f" {hint}" if hint and isinstance(error, ConnectError) else ""
        errors.print(f"{error.user_message}{advice}", style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1) from error
    _print(report, console, parameters, chosen)


def files_by_table(given: list[str]) -> dict[str, Path]:
    """Return the files by table. Raises typer.BadParameter for a text that is not TABLE=FILE, or a repeated table."""
    files = {}
    for each in given:
        table, separator, file = each.partition("=")
        if not table or not separator or not file:
            raise typer.BadParameter(f"{each!r} does not have the form TABLE=FILE. Give a table's name and its file.")
        if table in files:
            raise typer.BadParameter(f"table {table} is given twice. Give one file for each table.")
        files[table] = Path(file)
    return files


def _from_options(host: str, port: int, dbname: str, user: str) -> ConnectionParameters:
    password = os.environ.get("PGPASSWORD")
    if password is None:
        password = typer.prompt(f"Password of {user}", hide_input=True, default="", show_default=False)
    return ConnectionParameters(host, port, dbname, user, password)


def _from_profile() -> tuple[ConnectionParameters, str]:
    """Return the connection to the profile's source database, and a sentence to append to connection errors."""
    from cdc_lake.profile import resolved

    postgres = resolved()["postgres"]
    login = postgres.login()
    found = ConnectionParameters(login.host, login.port, postgres.database, login.user, login.password)
    return found, postgres.hint


def _load_with_progress(console: Console, load_sample: Callable[[Show], LoadReport]) -> LoadReport:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, console=console) as bars:
        tasks: dict[str, TaskID] = {}

        def show(step: str, done: int, total: int) -> None:
            if step not in tasks:
                tasks[step] = bars.add_task(step, total=total)
            bars.update(tasks[step], completed=done)

        return load_sample(show)


def _print(report: LoadReport, console: Console, parameters: ConnectionParameters, sample: LoadableSample) -> None:
    table = Table(title=f"Schema {sample.schema}" if sample.schema else f"Database {parameters.dbname}")
    table.add_column("table")
    table.add_column("rows", justify="right")
    for name, rows in report.tables:
        table.add_row(name, f"{rows:,}")
    console.print(table)
    published = f"Publication {sample.publication}; loaded" if sample.publication else "Loaded"
    console.print(f"{published} in {report.seconds:.1f} s.")
    if report.own_outbox:
        console.print("The scripts created the outbox and its triggers.")
    for role in report.roles:
        console.print(
            f"Created role {role} without login, because the scripts grant rights to it or make it an owner.",
            markup=False,
        )
    if report.wal_level != "logical":
        console.print(
            f"Changes cannot be captured yet: the server's wal_level is {report.wal_level}. Set it to logical, and "
            "restart the server.",
            style="yellow",
        )
