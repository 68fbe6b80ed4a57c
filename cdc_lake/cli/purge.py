"""`cdc-lake purge PIPELINE`: remove tombstones older than the replay window."""

from __future__ import annotations

from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    """Add the command to the application."""
    app.command()(purge)


def purge(pipeline: Annotated[str, typer.Argument(help="The pipeline's name.")]) -> None:
    """Remove tombstones older than the replay window from tables with `deletes: hard`, as the daily job does."""
    from cdc_lake.jobs.maintenance import purge as job
    from cdc_lake.pipeline.loading import load
    from cdc_lake.pipeline.naming import location
    from cdc_lake.profile import resolved, spark

    flow = load(pipeline)
    hard = [table for table in flow.tables if table.spec.deletes == "hard"]
    if not hard:
        typer.echo(f"no table of pipeline {pipeline} has `deletes: hard`: tombstones are kept")
        return
    where = location(resolved()["store"])
    engine = spark()
    for table in hard:
        done = engine.run(job.run, table.purge_spec(where, owner=f"cdc-lake purge {pipeline}"))
        outcome = f"{done.purged} tombstones purged, commit {done.instant}" if done.instant else done.why
        typer.echo(f"{table.name}: {outcome}")
