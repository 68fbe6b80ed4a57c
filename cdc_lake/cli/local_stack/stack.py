"""Commands that set up, start, stop and inspect the local stack."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from cdc_lake.cli.local_only import local_only
from cdc_lake.cli.printable import printable

HomeOption = Annotated[
    Path | None,
    typer.Option("--home", help="The state folder; default: CDC_LAKE_HOME, else .cdc-lake in the project."),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
OnlyOption = Annotated[
    list[str] | None, typer.Option("--only", help="Start only this component and those it needs; can be repeated.")
]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(setup)  # also for the aws profile: EMR jobs use the jars
    for command in (up, down, status, logs, doctor, env):
        app.command()(local_only(command))


def setup(
    aws: Annotated[
        bool,
        typer.Option(
            "--aws", help="Download only the jars that AWS needs: those of the Connect plugin and of the jobs."
        ),
    ] = False,
) -> None:
    """Download missing jars, plugins and Java into the cache folder.

    The schema registry is included if a pipeline uses Avro.
    """
    from rich.console import Console

    from cdc_lake.pipeline import avro_pipelines
    from infra.artifacts.artifacts import AWS_MODULES, ensure
    from infra.folders import cache_folder
    from infra.local.preparation import fetch
    from infra.local.progress_display import ConsoleSetup

    console = Console()
    if aws:
        with ConsoleSetup(console) as progress:
            ensure(AWS_MODULES, progress)
        console.print(f"The files to upload to AWS are in {cache_folder()}.", highlight=False, soft_wrap=True)
        return
    fetch(console, registry=bool(avro_pipelines.names()))
    console.print(f"All files of the stack are in {cache_folder()}.", highlight=False, soft_wrap=True)


def up(home: HomeOption = None, only: OnlyOption = None) -> None:
    """Start the components that are not running; safe to repeat.

    The schema registry starts only if a pipeline uses Avro.
    """
    from rich.console import Console

    from cdc_lake.pipeline import avro_pipelines
    from infra.artifacts.artifacts import REGISTRY_MODULES, missing
    from infra.local.components import needed_components
    from infra.local.progress_display import ConsoleProgress
    from infra.local.stack.stack import Stack
    from infra.local.stack.state_folder import find_home

    console, avro = Console(), avro_pipelines.names()
    downloaded = not missing(REGISTRY_MODULES)  # the demo of a pipeline that uses JSON does not download it
    if avro and not downloaded and not only:
        console.print(
            "Cannot start the schema registry: it is not downloaded. Run `cdc-lake setup` before you use "
            f"{', '.join(avro)}."
        )
    needed = needed_components(registry=bool(avro) and downloaded)
    with ConsoleProgress(console) as progress:
        Stack(find_home(home)).up(only or needed, progress)


def down(home: HomeOption = None) -> None:
    """Stop the stack; its data is kept."""
    from rich.console import Console

    from infra.local.progress_display import ConsoleProgress
    from infra.local.stack.stack import Stack
    from infra.local.stack.state_folder import find_home

    with ConsoleProgress(Console()) as progress:
        Stack(find_home(home)).down(progress)


def status(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Show the state, process id, port, version and memory of each component."""
    from dataclasses import asdict

    from infra.local.stack.stack import Stack
    from infra.local.stack.state_folder import find_home

    components = Stack(find_home(home)).status()
    if as_json:
        import json

        typer.echo(json.dumps([asdict(component) for component in components], indent=2))
        return
    from rich.console import Console
    from rich.table import Table

    from infra.local.progress_display import megabytes

    colours = {"running": "green", "starting": "yellow", "dead": "red", "stopped": "dim"}
    table = Table("component", "state", "pid", "port", "version", "memory", title=str(find_home(home).path))
    for c in components:
        state = f"[{colours[c.state]}]{c.state}[/]"
        table.add_row(c.name, state, str(c.pid or "-"), str(c.port or "-"), c.version or "-", megabytes(c.rss_bytes))
    Console().print(table)


def logs(
    name: Annotated[str, typer.Argument(help="The component.")],
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Follow the log.")] = False,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="Number of lines from the end.")] = 50,
    home: HomeOption = None,
) -> None:
    """Print the end of a component's log."""
    from infra.local.log_tail import read_log
    from infra.local.stack.state_folder import find_home

    for text in read_log(find_home(home).log(name), lines, follow=follow):
        typer.echo(printable(text), nl=False)


def doctor(home: HomeOption = None, as_json: JsonOption = False) -> None:
    """Report what would prevent the stack from starting; exit code 1 if a requirement is missing."""
    from dataclasses import asdict

    from infra.local.components import all_components
    from infra.local.doctor import examine
    from infra.local.stack.state_folder import find_home

    checks = examine(find_home(home), all_components())
    if as_json:
        import json

        typer.echo(json.dumps([asdict(check) for check in checks], indent=2))
    else:
        from rich.table import Column
        from rich.text import Text

        from cdc_lake.cli.layout import console, grid

        colours = {"ok": "green", "warning": "yellow", "missing": "red"}
        rows = [
            (
                Text(check.name),
                Text(check.level, colours[check.level]),
                Text(f"{check.found}: {check.todo}" if check.todo else check.found),
            )
            for check in checks
        ]
        out = console()
        out.print(grid(out, [Column("check"), Column(""), Column("found, and what to do")], rows))
    if any(check.level == "missing" for check in checks):
        raise typer.Exit(1)


def env(
    show_secrets: Annotated[bool, typer.Option("--show-secrets", help="Print passwords and keys too.")] = False,
    home: HomeOption = None,
) -> None:
    """Print shell variables for psql, aws and others: eval "$(cdc-lake env --show-secrets)"."""
    import shlex

    from cdc_lake.instance import dagster_home
    from infra.local.shell_variables import shell_variables
    from infra.local.stack.attach import load_endpoints

    dagster_home(home)  # Dagster rejects a DAGSTER_HOME that does not exist
    for name, value in shell_variables(load_endpoints(home), show_secrets).items():
        typer.echo(f"export {name}={shlex.quote(value)}")
    if not show_secrets:
        typer.echo("# passwords and keys are omitted; --show-secrets prints them", err=True)
