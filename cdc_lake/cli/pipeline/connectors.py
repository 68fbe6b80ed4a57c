"""`cdc-lake connectors lint`: check connector configurations before they are deployed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cdc_lake.cli.printable import printable

if TYPE_CHECKING:
    from resources.connect.connector_lint import Settings
    from resources.connect.kafka_connect import KafkaConnect


@dataclass(frozen=True)
class _Worker:
    """A Connect worker that validates configurations."""

    connect: KafkaConnect
    plugins: frozenset[str]
    placeholder_values: Mapping[str, str]
    """Known values of placeholders: the connection to the stack's database; empty for a worker outside of the stack."""


connectors = typer.Typer(help="Connector configurations.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the command group `connectors` to the application."""
    app.add_typer(connectors, name="connectors")


@connectors.callback()
def _group() -> None:
    """Connector configurations."""


@connectors.command()
def lint(
    files: Annotated[
        list[Path] | None, typer.Argument(help="Configuration files; default: all in connectors/.")
    ] = None,
    connect_url: Annotated[
        str | None, typer.Option(help="A Kafka Connect worker that validates them; default: the stack's, if it runs.")
    ] = None,
    connect_user: Annotated[
        str, typer.Option(help="The worker's user; the password is read from the variable CDC_LAKE_CONNECT_PASSWORD.")
    ] = "",
) -> None:
    """Report settings that are missing, misspelled or would lose records; exit code 1 if there are any.

    If the worker has a connector's plugin, the plugin validates the configuration. Otherwise the configuration is
    compared with the files in connectors/settings.
    """
    from cdc_lake.pipeline.connector_config import CONNECTORS, PARTIAL_CONFIGS
    from resources.connect.connector_lint import Settings
    from resources.errors import ConnectorConfigInvalid

    if connect_user and not connect_url:
        raise typer.BadParameter("--connect-user belongs to --connect-url. Add --connect-url, or leave it out.")
    settings = Settings.read(CONNECTORS / "settings")
    worker = _worker_at(connect_url, connect_user) if connect_url else _local_worker()
    faulty_files = 0
    shipped = (path for path in CONNECTORS.rglob("*.json") if path.parent.name not in PARTIAL_CONFIGS)
    for path in files or sorted(shipped):
        try:
            verdict, faults = _validated(path, worker, settings)
        except ConnectorConfigInvalid as error:
            verdict, faults = "", (error.user_message,)
        faulty_files += bool(faults)
        typer.echo(f"{path.name}: {_count(faults) if faults else verdict}")
        for fault in faults:
            typer.echo(f"  {printable(fault)}")
    if worker is None:
        typer.echo(
            "No plugin validated the files: no Kafka Connect worker is running. Start one with `cdc-lake up`, or"
            " name one with --connect-url.",
            err=True,
        )
    if faulty_files:
        raise typer.Exit(1)


def _worker_at(url: str, user: str) -> _Worker:
    import dagster as dg

    from resources.connect.kafka_connect import KafkaConnect

    connect = KafkaConnect(
        url=url,
        user=user,
        password=dg.EnvVar("CDC_LAKE_CONNECT_PASSWORD") if user else "",
        hint="--connect-url is the worker's URL, --connect-user and CDC_LAKE_CONNECT_PASSWORD are its login.",
    )
    return _Worker(connect, connect.plugins(), {})


def _local_worker() -> _Worker | None:
    """Return the stack's worker, with the stack's database as placeholder values; None if it is not running."""
    from infra.errors import StackDown
    from infra.local.stack.attach import load_endpoints, require_running
    from resources.connect.kafka_connect import KafkaConnect

    try:
        require_running(["connect", "postgres"])
    except StackDown:
        return None
    endpoints = load_endpoints()
    placeholder_values = {
        "host": endpoints.postgres_host,
        "port": str(endpoints.postgres_port),
        "user": endpoints.capture_role,
        "password": f"${{file:{endpoints.connect_secrets_file}:postgres.password}}",
        "database": endpoints.postgres_database,
    }
    user, password = endpoints.connect_login
    connect = KafkaConnect(url=endpoints.connect_url, user=user, password=password, hint="Run `cdc-lake up`.")
    return _Worker(connect, connect.plugins(), placeholder_values)


def _validated(path: Path, worker: _Worker | None, settings: Settings) -> tuple[str, Sequence[str]]:
    """Validate a file; return a phrase that says how, and the faults.

    Raises ConnectorConfigInvalid if the file cannot be rendered.
    """
    from resources.connect.config_template import placeholders, render
    from resources.connect.connector_validation import CLASS, validate_file

    # connectors/settings contains patterns for rendered values, so each placeholder is replaced by its name.
    config = render(path, {name: name for name in placeholders(path)})
    connector_class = config.get(CLASS, "")
    if not connector_class:
        return "", [f"{CLASS} is missing"]
    if worker is not None and connector_class in worker.plugins:
        found = validate_file(worker.connect, path, worker.placeholder_values)
        remarks = ""
        if found.unchecked:
            remarks += f". Not checked (set by the pipeline): {', '.join(found.unchecked)}"
        if found.undefined:
            remarks += f". Not defined by the plugin: {', '.join(found.undefined)}"
        return f"valid according to the plugin on {worker.connect.url}{remarks}", found.faults
    if connector_class in settings.classes:
        return "matches connectors/settings; not validated by the plugin", list(settings.faults(config))
    absent = (
        "no worker is running" if worker is None else f"the worker at {worker.connect.url} does not have the plugin"
    )
    return f"only the error policy was checked: {absent}, and connectors/settings has no file for its class", ()


def _count(faults: Sequence[str]) -> str:
    return "1 error" if len(faults) == 1 else f"{len(faults)} errors"
