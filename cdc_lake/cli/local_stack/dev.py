"""`cdc-lake dev`: Dagster's UI and daemon on the pipelines of this project."""

from __future__ import annotations

import os
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(dev)


def dev(port: Annotated[int, typer.Option(help="The UI's port.")] = 3000) -> None:
    """Run Dagster's UI and its daemon (sensors) in the foreground; Ctrl-C ends both, and their runs."""
    import sys
    import tempfile
    from pathlib import Path

    from cdc_lake.cli.local_stack import process_session
    from cdc_lake.instance import dagster_home
    from cdc_lake.profile_local import SPARK_SOCKET
    from cdc_lake.run_processes import FORK_RUNS

    os.environ["DAGSTER_HOME"] = str(dagster_home())
    os.environ[FORK_RUNS] = "1"
    arguments = ["--module-name", "cdc_lake.definitions", "--host", "127.0.0.1", "--port", str(port)]
    # In the state folder, the path could be longer than the 107 characters that Linux allows for a socket.
    with tempfile.TemporaryDirectory(prefix="cdc-lake-dev-") as folder:
        os.environ[SPARK_SOCKET] = str(Path(folder) / "spark.sock")
        code = process_session.run([sys.executable, "-m", "cdc_lake.webserver.dev", "dev", *arguments])
    raise typer.Exit(code)
