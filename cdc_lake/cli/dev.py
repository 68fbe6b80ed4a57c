"""`cdc-lake dev`: Dagster's UI and daemon on the pipelines of this project."""

from __future__ import annotations

import os
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(dev)


def dev(port: Annotated[int, typer.Option(help="The UI's port.")] = 3000) -> None:
    """Run Dagster's UI and its daemon (sensors) in the foreground; Ctrl-C ends both."""
    import sys
    from pathlib import Path

    from cdc_lake.instance import dagster_home

    os.environ["DAGSTER_HOME"] = str(dagster_home())
    command = Path(sys.executable).with_name("dagster")
    arguments = ["dev", "--module-name", "cdc_lake.definitions", "--host", "127.0.0.1", "--port", str(port)]
    os.execv(command, [str(command), *arguments])  # noqa: S606 - replaces this process, so that signals reach Dagster
