"""`cdc-lake resnapshot PIPELINE`: ask for confirmation, then replace a broken stream by a new snapshot."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lake.cli.printable import printable


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(resnapshot)


def resnapshot(
    pipeline: Annotated[str, typer.Argument(help="The pipeline's name.")],
    reason: Annotated[str, typer.Option("--reason", help="The reason, stored with the epoch.")] = "requested by a user",
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Start a new epoch: a new slot, a new snapshot, and deletes of the rows not in it. Lake tables stay readable.

    A polled pipeline (source.kind query) has no slot: all rows are polled again.
    """
    from cdc_lake.contract.source.epochs import Epochs
    from cdc_lake.pipeline.bucket_location import location
    from cdc_lake.pipeline.loading import load
    from cdc_lake.pipeline.operations import repolling, resnapshot_steps
    from cdc_lake.pipeline.operations import resnapshot as operation
    from cdc_lake.profile import resolved, spark

    loaded = load(pipeline)
    resources = resolved()
    epochs = Epochs(location(resources["store"]).store(), loaded.name)
    current = epochs.current()
    found = None if current is None else epochs.broken(current.number)
    if not yes:
        again = (
            f"Drop replication slot {loaded.slot} and let the connector read all tables of pipeline {pipeline} again?"
        )
        typer.confirm(f"Poll all rows of pipeline {pipeline} again?" if loaded.polled else again, abort=True)
    systems = resnapshot_steps.systems_of(loaded, resources, spark().run)
    resnapshots = repolling.repoll if loaded.polled else operation.resnapshot
    for line in resnapshots(loaded, systems, "; ".join([*(found.faults if found else ()), reason])):
        typer.echo(printable(line))
