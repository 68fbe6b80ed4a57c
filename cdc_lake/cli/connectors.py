"""`cdc-lake connectors lint`: connectors' data files, before anybody deploys them.

Here: which files, and what is shown. Not here: what is wrong with one (connector_lint.py and connector_policy.py in
resources).
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
) -> None:
    """Look for settings that are missing, misspelled or lose records; exit code 1 where there is one."""
    from cdc_lake.pipeline.stages.topic import CONNECTORS
    from resources.connector_config import placeholders, render
    from resources.connector_lint import Settings
    from resources.errors import ConnectorConfigInvalid

    settings = Settings.read(CONNECTORS / "settings")
    wrong = 0
    for path in files or sorted(CONNECTORS.rglob("*.json")):
        try:
            # Patterns are of filled values: each placeholder gets its own name.
            config = render(path, {name: name for name in placeholders(path)})
            faults = list(settings.faults(config))
            checked = config.get("connector.class", "") in settings.classes
        except ConnectorConfigInvalid as error:
            faults, checked = [error.user_message], True
        wrong += bool(faults)
        verdict = "ok" if checked else "an error policy; its plugin looks at the rest when it is deployed"
        typer.echo(f"{path.name}: {f'{len(faults)} faults' if faults else verdict}")
        for fault in faults:
            typer.echo(f"  {fault}")
    if wrong:
        raise typer.Exit(1)
