"""`cdc-lake reset PIPELINE`: delete a pipeline's connector, topics, objects and catalog entries, after confirmation."""

from __future__ import annotations

from typing import Annotated

import typer

from cdc_lake.cli.printable import printable


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(reset)


def reset(
    pipeline: Annotated[str, typer.Argument(help="The pipeline's name.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Delete a pipeline's connector, offsets, slot, topics, dashboards, catalog entries, raw objects and lake tables.

    Everything else in the source database is kept.
    """
    from cdc_lake.cli.local_only import profile
    from cdc_lake.cli.samples.run_demo import journal_in
    from cdc_lake.pipeline.bucket_location import location
    from cdc_lake.pipeline.loading import load
    from cdc_lake.pipeline.operations.reset import reset as start_over
    from cdc_lake.profile import resolved
    from infra.folders import state_folder

    loaded = load(pipeline)
    if not yes:
        typer.confirm(
            f"Delete the connector, slot, topics, dashboards, raw objects, dead letters and lake tables of pipeline "
            f"{pipeline}? The source's tables are kept.",
            abort=True,
        )
    resources = resolved()
    store = location(resources["store"]).store()
    removed = start_over(
        loaded,
        loaded.source_postgres(resources["postgres"]),
        resources["kafka"],
        resources["connect"],
        resources["glue"],
        store,
        resources["deployment"],
        resources["dashboards"],
    )
    count = 0
    for line in removed:
        typer.echo(f"removed {printable(line)}")
        count += 1
    if file := journal_in(profile(), pipeline):  # `demo --resume` must not continue a demo of the removed pipeline
        state_folder().joinpath(file).unlink(missing_ok=True)
    if not count:
        typer.echo(f"pipeline {pipeline} has nothing to remove")
