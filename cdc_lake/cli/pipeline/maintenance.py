"""`cdc-lake purge`, `compact`, `cluster` and `clean PIPELINE`: maintain lake tables now, as the scheduled jobs do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from cdc_lake.pipeline.assets.table_services import Service

Pipeline = Annotated[str, typer.Argument(help="The pipeline's name.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(purge)
    app.command()(compact)
    app.command()(cluster)
    app.command()(clean)


def purge(pipeline: Pipeline) -> None:
    """Remove tombstones older than the replay window from tables with `deletes: hard`, as the daily job does."""
    from cdc_lake.pipeline.assets.table_services import PURGE

    _run(pipeline, PURGE, f"Nothing to purge: no target of pipeline {pipeline} has `deletes: hard`.")


def compact(pipeline: Pipeline) -> None:
    """Merge the log files of merge-on-read tables into new base files, as the hourly job does."""
    from cdc_lake.pipeline.assets.table_services import COMPACTION

    _run(pipeline, COMPACTION, f"Nothing to compact: no target of pipeline {pipeline} has `table_type: mor`.")


def cluster(pipeline: Pipeline) -> None:
    """Merge the small files of lake tables into larger ones, as the daily job does."""
    from cdc_lake.pipeline.assets.table_services import CLUSTERING

    _run(pipeline, CLUSTERING, None)


def clean(pipeline: Pipeline) -> None:
    """Delete files that only states older than the tables' history need, as each commit and the daily job do."""
    from cdc_lake.pipeline.assets.table_services import CLEANING

    _run(pipeline, CLEANING, None)


def _run(pipeline: str, service: Service, nothing_to_do: str | None) -> None:
    """Run a service for the tables that need it; print `nothing_to_do` if none does (None: every table needs it)."""
    from cdc_lake.pipeline.bucket_location import location
    from cdc_lake.pipeline.loading import load
    from cdc_lake.profile import resolved, spark

    tables = service.tables(load(pipeline))
    if not tables and nothing_to_do:
        typer.echo(nothing_to_do)
        return
    where = location(resolved()["store"])
    engine = spark()
    for table in tables:
        report = engine.run(service.job, service.spec(table, where, f"cdc-lake {service.name} {pipeline}"))
        typer.echo(f"{table.lake_table}: {service.result(report)[0]}")
