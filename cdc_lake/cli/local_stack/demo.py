"""`cdc-lake demo`: run a sample pipeline on this machine, from an empty database to the dashboard."""

from __future__ import annotations

import json
import shlex
import time
from pathlib import Path
from typing import Annotated

import typer

from cdc_lake.cli.local_only import local_only
from cdc_lake.cli.samples.run_demo import DemoPipeline, journal, run, show, succeeded

_UP = "cdc-lake up    (if an engine is not running)"


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(local_only(demo, "`cdc-lake aws smoke` runs Northwind in an account."))


def demo(
    pipeline: Annotated[DemoPipeline, typer.Argument(help="The sample pipeline.")] = DemoPipeline.NORTHWIND,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object on standard output.")] = False,
    sql_dir: Annotated[
        Path | None,
        typer.Option(
            exists=True, file_okay=False, help="Load the SQL scripts of this folder instead of generated data."
        ),
    ] = None,
    csv: Annotated[
        list[str] | None,
        typer.Option(
            "--csv",
            metavar="TABLE=FILE",
            help="With moma: load this CSV file into the table; repeat for each table. The demo then skips its example "
            "changes.",
        ),
    ] = None,
    resume: Annotated[bool, typer.Option(help="Continue an interrupted demo.")] = False,
) -> None:
    """Start the stack, load the sample, materialise the graph, change rows at the source, and count the rows.

    Northwind: three orders are changed. MoMA: an artwork and an artist, in copy-on-write and merge-on-read tables.
    Pagila: categories, films and actors, in Parquet files with refined tables, and in Hudi tables; pagila_query:
    addresses, which are polled.
    Exit code 1 if a count, a change or a check fails, or if another demo of the pipeline runs on this state folder.
    """
    from rich.console import Console

    from cdc_lake.cli.samples.load import files_by_table
    from cdc_lake.demo.demos import DEMOS, UserRows
    from cdc_lake.demo.journal import Journal, exclusive
    from cdc_lake.pipeline import avro_pipelines
    from infra.folders import state_folder
    from infra.local.preparation import prepare

    if sql_dir is not None and pipeline is DemoPipeline.MOMA:
        raise typer.BadParameter("--sql-dir cannot be used with moma. Leave it out.")
    files = files_by_table(csv or [])
    if files and pipeline is not DemoPipeline.MOMA:
        raise typer.BadParameter("--csv can be used with moma only. Leave it out, or run `cdc-lake demo moma`.")
    for file in files.values():
        if not file.is_file():
            raise typer.BadParameter(f"There is no file {file}. Correct the path in --csv.")
    console = Console(stderr=as_json)
    started = time.monotonic()
    state = state_folder() / journal(pipeline)
    with exclusive(state):
        # Created before prepare(): after an interruption, `--resume` must not continue an earlier demo.
        steps = Journal(state, resume)
        seconds = prepare(console, registry=pipeline in avro_pipelines.names())
        name = "" if pipeline is DemoPipeline.NORTHWIND else f" {pipeline}"
        options = "".join(f" --csv {shlex.quote(each)}" for each in csv or [])
        if sql_dir is not None:
            options += f" --sql-dir {shlex.quote(str(sql_dir))}"
        resume_commands = (_UP, f"cdc-lake demo{name}{options} --resume")
        summary = run(console, pipeline, UserRows(sql_dir, files), steps, resume_commands)
    summary["seconds"] = {**seconds, **summary["seconds"], "total": round(time.monotonic() - started, 1)}
    if as_json:
        typer.echo(json.dumps(summary))
    else:
        sample = DEMOS[pipeline]
        show(console, summary, sample.title)
        console.print(f"next: cdc-lake dev (the graph in Dagster's UI), {sample.hint(summary)}", soft_wrap=True)
    if not succeeded(summary):
        raise typer.Exit(1)
