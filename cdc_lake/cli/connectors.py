"""`cdc-lake connectors lint`: connectors' data files, before anybody deploys them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from resources.connector_lint import Settings
    from resources.kafka_connect import KafkaConnect


@dataclass(frozen=True)
class _Worker:
    """A worker to ask."""

    connect: KafkaConnect
    plugins: frozenset[str]
    known: Mapping[str, str]
    """Real values of placeholders."""


connectors = typer.Typer(help="Connectors' configurations, which are data files.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(connectors, name="connectors")


@connectors.callback()
def _group() -> None:
    """Connectors' configurations, which are data files."""


@connectors.command()
def lint(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Configurations; all of connectors/ if none is given.")
    ] = None,
    connect_url: Annotated[
        str | None, typer.Option(help="A Kafka Connect worker to ask; the stack's if none is given, and it runs.")
    ] = None,
    connect_user: Annotated[
        str, typer.Option(help="Its user; the password is taken from the variable CDC_LAKE_CONNECT_PASSWORD.")
    ] = "",
) -> None:
    """Look for settings that are missing, misspelled or lose records; exit code 1 where there is one.

    A connector whose plugin is on the worker is judged by the plugin itself, another one by what is known of it.
    """
    from cdc_lake.pipeline.assets.topic import CONNECTORS
    from resources.connector_lint import Settings
    from resources.errors import ConnectorConfigInvalid

    settings = Settings.read(CONNECTORS / "settings")
    worker = _named(connect_url, connect_user) if connect_url else _stacks()
    wrong = 0
    for path in files or sorted(CONNECTORS.rglob("*.json")):
        try:
            verdict, faults = _judged(path, worker, settings)
        except ConnectorConfigInvalid as error:
            verdict, faults = "", (error.user_message,)
        wrong += bool(faults)
        typer.echo(f"{path.name}: {f'{len(faults)} faults' if faults else verdict}")
        for fault in faults:
            typer.echo(f"  {fault}")
    if worker is None:
        typer.echo(
            "No plugin was asked, since no Kafka Connect worker runs here: start one with `cdc-lake up`, or name one"
            " with --connect-url.",
            err=True,
        )
    if wrong:
        raise typer.Exit(1)


def _named(url: str, user: str) -> _Worker:
    import dagster as dg

    from resources.kafka_connect import KafkaConnect

    connect = KafkaConnect(
        url=url,
        user=user,
        password=dg.EnvVar("CDC_LAKE_CONNECT_PASSWORD") if user else "",
        hint="--connect-url names it, --connect-user and CDC_LAKE_CONNECT_PASSWORD are its login.",
    )
    return _Worker(connect, connect.plugins(), {})


def _stacks() -> _Worker | None:
    """The stack's worker, if it runs, and the login of the database beside it."""
    from infra.local.attach import load_endpoints, require_running
    from infra.local.errors import StackDown
    from resources.kafka_connect import KafkaConnect

    try:
        require_running(["connect", "postgres"])
    except StackDown:
        return None
    at = load_endpoints()
    known = {
        "host": at.postgres_host,
        "port": str(at.postgres_port),
        "user": at.capture_role,
        "password": f"${{file:{at.connect_secrets_file}:postgres.password}}",
        "database": at.postgres_database,
    }
    user, password = at.connect_login
    connect = KafkaConnect(url=at.connect_url, user=user, password=password, hint="Run `cdc-lake up`.")
    return _Worker(connect, connect.plugins(), known)


def _judged(path: Path, worker: _Worker | None, settings: Settings) -> tuple[str, Sequence[str]]:
    """What to say of a file without a fault, and its faults. Raises ConnectorConfigInvalid."""
    from resources.connector_config import placeholders, render
    from resources.connector_validation import CLASS, judge

    # What is known are patterns of filled values: each placeholder gets its own name.
    config = render(path, {name: name for name in placeholders(path)})
    kind = config.get(CLASS, "")
    if not kind:
        return "", [f"{CLASS} is missing"]
    if worker is not None and kind in worker.plugins:
        found = judge(worker.connect, path, worker.known)
        unsure = (
            f"; not judged, for a pipeline fills them in: {', '.join(found.not_judged)}" if found.not_judged else ""
        )
        if found.undefined:
            unsure += f"; its plugin does not define {', '.join(found.undefined)}"
        return f"ok, says its plugin on {worker.connect.url}{unsure}", found.faults
    if kind in settings.classes:
        return "ok, by what is known of its settings; its plugin was not asked", list(settings.faults(config))
    absent = "was not asked" if worker is None else f"is not on {worker.connect.url}"
    return f"an error policy, and nothing else is known: its plugin {absent}", ()
