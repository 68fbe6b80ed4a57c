"""`cdc-lake run PIPELINE`: land and apply continuously, until a signal ends it."""

from __future__ import annotations

import os
import signal
import socket
import threading
from collections.abc import Callable
from types import FrameType
from typing import Annotated

import typer

from cdc_lake.cli.printable import printable


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(run)


def run(
    pipeline: Annotated[str, typer.Argument(help="The pipeline's name.")],
    report_seconds: Annotated[
        float, typer.Option("--report", min=1, help="The interval of the reports to Dagster, in seconds.")
    ] = 60,
) -> None:
    """Land and apply a pipeline's changes within seconds, in one Spark session, until Ctrl-C or SIGTERM.

    After the signal, the command applies the landed records and ends. A second signal ends it immediately.
    """
    import dagster as dg

    from cdc_lake.instance import instance
    from cdc_lake.pipeline.continuous import run as continuous
    from cdc_lake.pipeline.loading import load
    from cdc_lake.profile import resolved, spark

    loaded, resources = load(pipeline), resolved()
    opened = continuous.systems(
        loaded,
        resources["postgres"],
        resources["kafka"],
        resources["store"],
        spark(),
        resources["glue"],
        resources["athena"],
        f"cdc-lake run {pipeline}, process {os.getpid()} on {socket.gethostname()}",
    )
    stop = threading.Event()

    def request_stop(_number: int, _frame: object) -> None:
        stop.set()
        handle_signals(signal.SIG_DFL)

    def handle_signals(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, handler)

    handle_signals(request_stop)
    with opened as systems, instance() as dagster:

        def report(event: dg.AssetMaterialization | dg.AssetObservation) -> None:
            dagster.report_runless_asset_event(event)
            shown = event.metadata.get("changes") or event.metadata["error"]
            typer.echo(printable(f"{event.asset_key.to_user_string()}: {shown.value}"))

        typer.echo(f"Starting pipeline {pipeline}. Press Ctrl-C to stop it.")
        continuous.run(loaded, systems, report, stop, report_seconds)
