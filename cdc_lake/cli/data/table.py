"""`cdc-lake table show` prints a lake table's commits and files, `cdc-lake changes` its changed rows."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Annotated

import typer

from cdc_lake.cli.data.query import OutputFormat, print_result
from cdc_lake.cli.printable import json_text

if TYPE_CHECKING:
    from cdc_lake.contract.objects.store import ObjectStore
    from cdc_lake.contract.table.timeline import Commit

Name = Annotated[str, typer.Argument(help="A lake table: database.table, or its name if that is unique.")]
_MB = 2**20


def register(app: typer.Typer) -> None:
    """Add the commands to the application."""
    group = typer.Typer(help="Lake tables: their commits and files.", no_args_is_help=True)
    group.command("show")(show)
    app.add_typer(group, name="table")
    app.command()(changes)


def show(
    table: Name,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="The number of newest commits.")] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Show a table's commits, the oldest state that can be read, files, write amplification, pending compactions."""
    from cdc_lake import reading
    from cdc_lake.contract.table import failed_writes, file_slices, history, timeline
    from cdc_lake.pipeline.bucket_location import location
    from cdc_lake.profile import resolved

    found = reading.table(table)
    store: ObjectStore = location(resolved()["store"]).store()
    prefix = found.lake_prefix
    instants = history.commits(store, prefix)
    readable = history.readable(store, prefix)
    commits = [timeline.commit_at(store, prefix, instant) for instant in reversed(instants[-limit:])]
    files = file_slices.count(
        store.scan(prefix), prefix, instants, min(instants, default=""), timeline.replaced_groups(store, prefix)
    )
    pending = failed_writes.pending_compactions(store, prefix)
    amplification = timeline.write_amplification(commits[::-1])
    if as_json:
        typer.echo(
            json_text(
                {
                    "table": f"{found.database}.{found.name}",
                    "table_type": found.target.table_type,
                    "oldest_readable": readable[0] if readable else None,
                    "commits": [_facts(commit) for commit in commits],
                    "write_amplification": amplification,
                    "files": dataclasses.asdict(files),
                    "pending_compactions": pending,
                }
            )
        )
        return
    from rich.table import Column, Table

    from cdc_lake.cli.layout import console

    out = console()
    headers = ("operation", "applied up to", "rows", "inserts", "updates", "files", "MB", "raw MB")
    # Users copy instants to --as-of.
    instant = Column("instant (UTC)", no_wrap=True, min_width=17)
    listed = Table(instant, *(Column(header, overflow="fold") for header in headers))
    for commit in commits:
        facts = _facts(commit)
        numbers = (f"{facts[name]:,}" for name in ("rows_written", "inserts", "updates", "files_written"))
        sizes = (commit.bytes_written, commit.raw_bytes)
        listed.add_row(
            commit.instant,
            commit.operation,
            str(facts["what"]),
            *numbers,
            *("" if size is None else f"{size / _MB:,.2f}" for size in sizes),
        )
    out.print(listed)
    older = f"; {len(instants) - len(commits)} older commits in the timeline" if len(instants) > len(commits) else ""
    out.print(f"oldest state that can be read: {readable[0] if readable else 'none, there is no commit'}{older}")
    out.print(
        f"{files.base_files:,} base files ({files.base_bytes / _MB:,.1f} MB) in {files.partitions:,} partitions, "
        f"{files.log_files:,} log files ({files.log_bytes / _MB:,.1f} MB); {files.older_files:,} older files "
        f"({files.older_bytes / _MB:,.1f} MB) are kept for earlier states"
    )
    if amplification is not None:
        out.print(f"write amplification of these commits: {amplification:,.1f} bytes written for each raw byte applied")
    if pending:
        out.print(f"pending compactions, which `cdc-lake compact` completes: {', '.join(pending)}")


def _facts(commit: Commit) -> dict[str, object]:
    """Return the printed facts of a commit; `what` names the last manifest that it applied."""
    what = "by another program" if commit.checkpoint is None else f"manifest {commit.checkpoint.manifest}"
    names = ("operation", "rows_written", "inserts", "updates", "files_written", "bytes_written", "raw_bytes")
    return {"instant": commit.instant, "what": what, **{name: getattr(commit, name) for name in names}}


def changes(
    table: Name,
    since: Annotated[str, typer.Option(metavar="INSTANT|TIME", help="Commits after this instant or time (UTC).")],
    until: Annotated[
        str | None, typer.Option(metavar="INSTANT|TIME", help="Commits up to this one; default: the newest.")
    ] = None,
    output: Annotated[OutputFormat, typer.Option("--format", "-f", help="How to print the rows.")] = OutputFormat.table,
) -> None:
    """Print the newest state of each row that changed, with Spark; purged deletes are not in it."""
    import time

    from cdc_lake import reading
    from cdc_lake.cli.data import spark_query

    started = time.monotonic()
    found = reading.table(table)
    spark, where = reading.session()
    rows = reading.changes(spark, found, where, since, until).orderBy(reading.COMMIT_TIME, *found.spec.key)
    print_result(spark_query.result(lambda: rows, where, [found], until, started), output)
