"""`cdc-lake migrate PIPELINE`: switch Hudi tables whose instants are in local time to UTC."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(migrate)


def migrate(pipeline: Annotated[str, typer.Argument(help="The pipeline's name.")]) -> None:
    """Set UTC as the time zone of Hudi tables whose instants an earlier release named in local time.

    Waits until each table's newest instant, read as UTC, is in the past.
    """
    from cdc_lake.pipeline.bucket_location import location
    from cdc_lake.pipeline.loading import load
    from cdc_lake.pipeline.operations.timeline_migration import to_utc
    from cdc_lake.profile import resolved

    loaded = load(pipeline)
    store = location(resolved()["store"]).store()
    for line in to_utc(loaded, store, owner=f"cdc-lake migrate {pipeline}"):
        typer.echo(line)
