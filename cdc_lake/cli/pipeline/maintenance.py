"""`cdc-lake purge`, `compact`, `cluster`, `clean` and `reconcile PIPELINE`: run a scheduled job's work immediately."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from cdc_lake.cli.printable import printable

if TYPE_CHECKING:
    from cdc_lake.pipeline.assets.table_services import Service

Pipeline = Annotated[str, typer.Argument(help="The pipeline's name.")]


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    app.command()(purge)
    app.command()(compact)
    app.command()(cluster)
    app.command()(clean)
    app.command()(reconcile)


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

    _run(pipeline, CLUSTERING, f"Nothing to cluster: no target of pipeline {pipeline} has `format: hudi`.")


def clean(pipeline: Pipeline) -> None:
    """Delete files that belong only to states older than the tables' history, as each commit and the daily job do."""
    from cdc_lake.pipeline.assets.table_services import CLEANING

    _run(pipeline, CLEANING, f"Nothing to clean: no target of pipeline {pipeline} has `format: hudi`.")


def reconcile(pipeline: Pipeline) -> None:
    """Send deletes for rows that are gone from the source of a polled pipeline, as the daily job does."""
    from cdc_lake.pipeline.assets.table_services import RECONCILIATION

    nothing = f"Nothing to reconcile: pipeline {pipeline} captures the log, which contains all deletes."
    _run(pipeline, RECONCILIATION, nothing)


def _run(pipeline: str, service: Service, nothing_to_do: str) -> None:
    """Run a service for its tables of the pipeline; print `nothing_to_do` if there is no such table.

    A table whose service fails does not stop the others; the exit code is then 1.
    """
    from cdc_lake.contract.errors import ContractError
    from cdc_lake.pipeline.bucket_location import location
    from cdc_lake.pipeline.loading import load
    from cdc_lake.pipeline.operations.polling import PollSystems
    from cdc_lake.profile import resolved, spark
    from resources.errors import ResourceError

    loaded = load(pipeline)
    tables = service.tables(loaded)
    if not tables:
        typer.echo(nothing_to_do)
        return
    resources = resolved()
    systems = PollSystems(
        loaded.source_postgres(resources["postgres"]),
        resources["kafka"],
        location(resources["store"]),
        spark().run,
        f"cdc-lake {service.name} {pipeline}",
    )
    failed = 0
    for table in tables:
        try:
            report = service.run(table, systems)
        except Exception as error:  # noqa: BLE001 - Hudi raises any error for a damaged file; the other tables need theirs
            what = f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"
            if isinstance(error, ContractError | ResourceError):
                what = error.user_message
            typer.echo(printable(f"{table.lake_table}: {what}"), err=True)
            failed += 1
        else:
            typer.echo(printable(f"{table.lake_table}: {service.result(report)[0]}"))
    if failed:
        raise typer.Exit(1)
