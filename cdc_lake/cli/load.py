"""`cdc-lake load`: load the sample database, or SQL scripts and the outbox, into any PostgreSQL server."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn
from rich.table import Table

from cdc_lake.cli.local_only import profile
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.errors import LoadError
from cdc_lake.samples.loader import PUBLICATION, SCHEMA, LoadReport, load


def register(app: typer.Typer) -> None:
    """Add the command `load` to the application."""
    # -h is the host, as in psql, so only --help prints help.
    app.command("load", context_settings={"help_option_names": ["--help"]})(load_command)


def load_command(
    host: Annotated[
        str | None, typer.Option("--host", "-h", help="The server's name or address.", show_default="localhost")
    ] = None,
    port: Annotated[int, typer.Option("--port", "-p", min=1, max=65535, help="The server's port.")] = 5432,
    dbname: Annotated[str, typer.Option("--dbname", "-d", help="The database; it must exist.")] = "devdb",
    user: Annotated[
        str, typer.Option("--user", "-u", help="A user who may create a schema and a publication.")
    ] = "postgres",
    sql_dir: Annotated[
        Path | None,
        typer.Option("--sql-dir", help="Load the .sql files of this folder, in name order, instead of generated data."),
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Load the Northwind sample into schema datalake: 14 tables, outbox, publication.

    The password is read from PGPASSWORD or asked for. In the aws profile, without --host, the profile's source and
    login are used. The load is one transaction.
    """
    console, errors = Console(), Console(stderr=True)
    parameters = _from_profile() if host is None and profile() != "local" else _from_options(host, port, dbname, user)
    source = f"the scripts in {sql_dir}" if sql_dir else "generated data"
    if not yes:
        typer.confirm(f"Create schema {SCHEMA} in {parameters} from {source}?", abort=True)
    try:
        report = _load_with_progress(parameters, sql_dir, errors)
    except LoadError as error:
        errors.print(error.user_message, style="red", markup=False, highlight=False, soft_wrap=True)
        raise typer.Exit(1) from error
    _print(report, console)


def _from_options(host: str | None, port: int, dbname: str, user: str) -> ConnectionParameters:
    password = os.environ.get("PGPASSWORD")
    if password is None:
        password = typer.prompt(f"Password of {user}", hide_input=True, default="", show_default=False)
    return ConnectionParameters(host or "localhost", port, dbname, user, password)


def _from_profile() -> ConnectionParameters:
    """Return the connection to the profile's source database."""
    from cdc_lake.profile import resolved

    postgres = resolved()["postgres"]
    login = postgres.login()
    return ConnectionParameters(login.host, login.port, postgres.database, login.user, login.password)


def _load_with_progress(parameters: ConnectionParameters, sql_dir: Path | None, console: Console) -> LoadReport:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.completed}/{task.total}"))
    with Progress(*columns, console=console) as bars:
        tasks: dict[str, TaskID] = {}

        def show(what: str, done: int, total: int) -> None:
            if what not in tasks:
                tasks[what] = bars.add_task(what, total=total)
            bars.update(tasks[what], completed=done)

        return load(parameters, sql_dir, show)


def _print(report: LoadReport, console: Console) -> None:
    table = Table(title=f"Schema {SCHEMA}")
    table.add_column("table")
    table.add_column("rows", justify="right")
    for name, rows in report.tables:
        table.add_row(name, f"{rows:,}")
    console.print(table)
    console.print(f"Publication {PUBLICATION}; loaded in {report.seconds:.1f} s.")
    if report.own_outbox:
        console.print("The scripts created the outbox and its triggers.")
    for role in report.roles:
        console.print(f"Created role {role} without login, because the scripts grant rights to it.", markup=False)
    if report.wal_level != "logical":
        console.print(
            f"The server's wal_level is {report.wal_level}: set it to logical and restart the server "
            "before changes can be captured.",
            style="yellow",
        )
