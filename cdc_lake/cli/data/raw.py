"""`cdc-lake raw ls` lists the raw objects in the manifests, `cdc-lake raw cat` prints their records."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from decimal import Decimal
from typing import Annotated, Any

import typer

from cdc_lake.cli.printable import for_output, json_text, printable


def register(app: typer.Typer) -> None:
    """Add the command group `raw` to the application."""
    raw = typer.Typer(help="The raw objects of a pipeline.", no_args_is_help=True)
    raw.command("ls")(ls)
    raw.command("cat")(cat)
    app.add_typer(raw, name="raw")


def ls(
    pipeline: Annotated[str, typer.Argument(help="The pipeline's name.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """List the landed objects, each with the manifest that committed it."""
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    rows = list(_objects(pipeline))
    if as_json:
        for row in rows:
            typer.echo(json_text(row))
        return
    # Users copy keys from this table: on a terminal a long key is folded, not cut, and in a pipe each row is one line.
    console = Console() if sys.stdout.isatty() else Console(width=100_000)
    headers = ("manifest", "committed", "partition", "offsets", "records", "bytes", "object")
    table = Table(*(Column(header, overflow="fold") for header in headers))
    for row in rows:
        offsets = f"{row['first']} to {row['last']}"
        cells = (
            row["manifest"],
            row["committed_at"],
            row["partition"],
            offsets,
            row["records"],
            row["bytes"],
            row["key"],
        )
        table.add_row(*(Text(printable(str(cell))) for cell in cells))
    console.print(table if rows else f"pipeline {pipeline} has no landed objects")


def cat(
    pipeline: Annotated[str, typer.Argument(help="The pipeline's name.")],
    key: Annotated[str | None, typer.Argument(help="An object's key; default: all objects in order.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN=VALUE",
            help="Print only records whose COLUMN has this VALUE: text as it is, other types as JSON (null, true, 5). "
            "If repeated, all must match.",
        ),
    ] = None,
    limit: Annotated[int, typer.Option(min=0, help="Maximum number of records; 0: all.")] = 0,
) -> None:
    """Print landed records as JSON, one per line. Avro records are decoded."""
    from cdc_lake.contract.errors import ContractError
    from cdc_lake.contract.objects import raw_objects

    conditions = _conditions(where or [])
    store, manifests = _store_and_manifests(pipeline)
    shown = 0
    found = False
    for item in (item for manifest in manifests for item in manifest.objects if key in {None, item.key}):
        found = True
        for _, value in raw_objects.records(store, item):
            if not _matches(value, conditions):
                continue
            typer.echo(for_output(value.decode(errors="replace")))
            shown += 1
            if shown == limit:
                return
    if key is not None and not found:
        raise ContractError(
            f"Cannot print {key}: no manifest of pipeline {pipeline} lists it. "
            f"Choose a key that `cdc-lake raw ls {pipeline}` prints."
        )


def _conditions(where: list[str]) -> list[tuple[str, str]]:
    """Return column and value of each condition. Raises typer.BadParameter if one is not COLUMN=VALUE."""
    parts = [(text, *text.partition("=")) for text in where]
    for text, column, equals, _ in parts:
        if not column or not equals:
            raise typer.BadParameter(
                f"{text!r} is not a condition. Use COLUMN=VALUE, such as id=5.", param_hint="--where"
            )
    return [(column, value) for _, column, _, value in parts]


def _matches(value: bytes, conditions: list[tuple[str, str]]) -> bool:
    """Return whether a record is a JSON object that meets all conditions."""
    if not conditions:
        return True
    try:
        record = json.loads(value, parse_float=Decimal)
    except ValueError:
        return False
    if not isinstance(record, dict):
        return False
    return all(column in record and _equals(record[column], value) for column, value in conditions)


def _equals(found: object, text: str) -> bool:
    """Return whether a value is the text, or equals the text as JSON."""
    if isinstance(found, str):
        return found == text
    try:
        wanted = json.loads(text, parse_float=Decimal)
    except ValueError:
        return False
    return type(found) is type(wanted) and found == wanted


def _objects(pipeline: str) -> Iterator[dict[str, Any]]:
    _, manifests = _store_and_manifests(pipeline)
    for manifest in manifests:
        for item in manifest.objects:
            yield {
                "manifest": manifest.number,
                "committed_at": manifest.committed_at.isoformat(timespec="seconds"),
                **item.model_dump(mode="json", include={"partition", "first", "last", "records", "bytes", "key"}),
            }


def _store_and_manifests(pipeline: str) -> tuple[Any, list[Any]]:
    from cdc_lake.pipeline import table_progress
    from cdc_lake.pipeline.bucket_location import location
    from cdc_lake.pipeline.loading import load
    from cdc_lake.profile import resolved

    loaded = load(pipeline)
    store = location(resolved()["store"]).store()
    return store, [manifest for table in loaded.tables for manifest in table_progress.manifests(store, table)]
