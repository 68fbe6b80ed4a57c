"""`cdc-lake dlq`: list, show, replay, edit and drop the dead letters of a pipeline."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from cdc_lake.cli.printable import json_text, printable

if TYPE_CHECKING:
    from cdc_lake.contract.objects.dead_letters import DeadLetter
    from cdc_lake.contract.objects.store import ObjectStore
    from cdc_lake.jobs.maintenance.replay import ReplayReport
    from cdc_lake.pipeline.pipeline_table import PipelineTable

_ROW = 16  # bytes in a line of the hex dump
_SHOWN = 4096  # bytes or characters of a value that are printed without --raw
_WIDE = 100_000  # width of a table in a pipe or file

Pipeline = Annotated[str, typer.Argument(help="The pipeline's name.")]
Letter = Annotated[str, typer.Argument(help="A letter's id from `dlq list`: TOPIC+PARTITION+OFFSET[@EPOCH].")]
Letters = Annotated[list[str], typer.Argument(help="Ids of letters from `dlq list`.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]


def register(app: typer.Typer) -> None:
    """Add the command group `dlq` to the application."""
    dlq = typer.Typer(help="Dead letters: records that could not be landed or read.", no_args_is_help=True)
    for command in (show, replay, edit, drop):
        dlq.command()(command)
    dlq.command("list")(list_)
    dlq.command("ls", hidden=True)(list_)
    app.add_typer(dlq, name="dlq")


def list_(
    pipeline: Pipeline,
    as_json: AsJson = False,
    closed: Annotated[
        bool,
        typer.Option("--closed", help="List the closed letters: replayed, dropped, or overtaken by a newer snapshot."),
    ] = False,
) -> None:
    """List dead letters: record, time, and reason."""
    from rich.console import Console
    from rich.table import Column, Table
    from rich.text import Text

    from cdc_lake.contract.objects import dead_letters

    found = list(dead_letters.letters(_store(pipeline), pipeline, closed))
    if as_json:
        for letter in found:
            typer.echo(json_text(_fields(letter)))
        return
    if not found:
        typer.echo(f"pipeline {pipeline} has no {'closed' if closed else 'open'} dead letters")
        return
    table = Table(Column("letter", overflow="fold"), "found (UTC)", Column("bytes", justify="right"), "tries")
    if closed:
        table.add_column("ended (UTC)")
    table.add_column("reason", overflow="fold")
    for letter in found:
        ended = [_ended(letter)] if closed else []
        size = "none" if letter.size is None else f"{letter.size:,}"
        cells = (letter.id, f"{letter.found_at:%Y-%m-%d %H:%M:%S}", size, str(letter.tries), *ended, letter.reason)
        table.add_row(*(Text(printable(cell)) for cell in cells))
    (Console() if sys.stdout.isatty() else Console(width=_WIDE)).print(table)


def show(
    pipeline: Pipeline,
    letter: Letter,
    raw: Annotated[
        bool, typer.Option("--raw", help="Print only the value's bytes, unchanged in a pipe or file.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object: `value` in base64, `text` decoded (from Avro too).")
    ] = False,
) -> None:
    """Show one dead letter: the record's position, the reason, and the value."""
    import base64

    from cdc_lake.contract.objects import dead_letters
    from cdc_lake.pipeline.registry_location import decode_for_display
    from cdc_lake.profile import resolved

    store = _store(pipeline)
    found = dead_letters.find(store, pipeline, letter)
    value = dead_letters.value_of(store, pipeline, found)
    if raw:
        if sys.stdout.isatty():
            typer.echo(printable((value or b"").decode(errors="backslashreplace")))
        else:
            sys.stdout.buffer.write(value or b"")
        return
    decoded = decode_for_display(resolved()["kafka"], value)
    if as_json:
        encoded = None if value is None else base64.b64encode(value).decode()
        typer.echo(json_text({**_fields(found), "value": encoded, "text": _text(decoded)}))
        return
    for name, content in _fields(found).items():
        if content not in (None, {}):
            typer.echo(printable(f"{name:<11} {content}"))
    for line in _value_lines(decoded):
        typer.echo(line)


def replay(
    pipeline: Pipeline,
    letter: Annotated[list[str] | None, typer.Argument(help="Ids of letters from `dlq list`; default: all.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per lake table.")] = False,
) -> None:
    """Apply dead letters again, after their cause is fixed; exit code 1 if one still cannot be read.

    An old record does not overwrite a newer row. A letter that still cannot be read stays open, with its new reason.
    """
    from cdc_lake.contract.errors import ContractError
    from cdc_lake.contract.objects import dead_letters
    from cdc_lake.jobs.maintenance import replay as job
    from cdc_lake.pipeline.bucket_location import location
    from cdc_lake.pipeline.loading import load
    from cdc_lake.pipeline.registry_location import registry_location
    from cdc_lake.profile import resolved, spark

    loaded = load(pipeline)
    systems = resolved()
    where, registry = location(systems["store"]), registry_location(systems["kafka"], loaded)
    store = where.store()
    wanted = [dead_letters.find(store, pipeline, each) for each in dict.fromkeys(letter or ())]
    chosen = wanted if letter else list(dead_letters.letters(store, pipeline))
    topics = {table.topic for table in loaded.tables}
    if orphans := [each for each in chosen if each.topic not in topics]:
        orphan = ContractError(
            f"Cannot replay {orphans[0].id}: pipeline {pipeline} has no table for topic {orphans[0].topic}. Add the "
            f"table to the YAML again, or drop the letter with `cdc-lake dlq drop {pipeline} {orphans[0].id}`."
        )
        if letter:
            raise orphan
        typer.echo(orphan.user_message, err=True)  # the letters of the other tables are replayed
        chosen = [each for each in chosen if each.topic in topics]
    for table in loaded.tables:
        letters = [each.id for each in chosen if each.topic == table.topic]
        if letters and not table.hudi_targets:
            raise ContractError(
                f"Cannot replay {letters[0]}: all targets of table {table.name} have format: parquet, and their "
                f"objects are never changed. Update the row at the source, which sends it again, or run "
                f"`cdc-lake resnapshot {pipeline}`. Then drop the letter with "
                f"`cdc-lake dlq drop {pipeline} {letters[0]}`."
            )
    failed = bool(orphans)
    if not chosen and not orphans:
        typer.echo("{}" if as_json else f"pipeline {pipeline} has no open dead letters")
        return
    for table in loaded.tables:
        ids = [each.id for each in chosen if each.topic == table.topic]
        if ids:
            owner = f"cdc-lake dlq replay {pipeline}"
            parquet_tables = [each.lake_table for each in table.in_targets if not each.is_hudi]
            remaining: dict[str, str] = {}
            for each in table.hudi_targets:
                closes = each == table.hudi_targets[-1] and not parquet_tables
                applying = each.upsert_spec(where, owner=owner)
                spec = job.ReplaySpec(applying, ids, closes, registry, table.landing_transforms, dict(remaining))
                report = spark().run(job.run, spec)
                _print_report(each, report, as_json)
                remaining |= report.failed
            failed = failed or bool(remaining)
            if parquet_tables:
                typer.echo(
                    f"The dead letters of {table.name} stay open: they cannot be applied to targets with format: "
                    f"parquet ({', '.join(parquet_tables)}). Update their rows at the source, then "
                    f"run `cdc-lake dlq drop {pipeline} LETTER`.",
                    err=True,
                )
    if failed:
        raise typer.Exit(1)


def edit(
    pipeline: Pipeline,
    letter: Letter,
    value: Annotated[
        Path,
        typer.Option(help="A file with the complete corrected value. A line break at the end of a text is removed."),
    ],
) -> None:
    """Store a corrected value for `dlq replay`; the original is kept."""
    from cdc_lake.contract.errors import ContractError
    from cdc_lake.contract.objects import dead_letters

    store = _store(pipeline)
    found = dead_letters.find(store, pipeline, letter)
    try:
        body = _without_line_break(value.read_bytes())
    except OSError as error:
        raise ContractError(
            f"Cannot read {value}: {error.strerror}. Give the path of a readable file with --value."
        ) from error
    if not body:
        raise ContractError(
            f"Cannot replace the value of {letter}: the file {value} is empty. Write the corrected value to it, or "
            f"drop the record with `cdc-lake dlq drop {pipeline} {letter}`."
        )
    dead_letters.replace_value(store, pipeline, found, body)
    typer.echo(
        f"Replaced the value of {found.id} ({len(body):,} bytes). Apply it with "
        f"`cdc-lake dlq replay {pipeline} {found.id}`."
    )


def drop(
    pipeline: Pipeline,
    letter: Letters,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
) -> None:
    """Drop dead letters: the lake will never have these changes. `dlq list --closed` still lists them."""
    from cdc_lake.contract.objects import dead_letters

    store = _store(pipeline)
    found = [dead_letters.find(store, pipeline, each) for each in dict.fromkeys(letter)]
    if not yes:
        for each in found:
            typer.echo(printable(f"{each.id}: {each.reason}"))
        what = (
            "1 dead letter? The lake will never have this change."
            if len(found) == 1
            else f"{len(found)} dead letters? The lake will never have these changes."
        )
        typer.confirm(f"Drop {what}", abort=True)
    for each in found:
        dead_letters.close(store, pipeline, each, "dropped", None)
        typer.echo(f"dropped {each.id}")


def _store(pipeline: str) -> ObjectStore:
    from cdc_lake.pipeline.bucket_location import location
    from cdc_lake.pipeline.loading import load
    from cdc_lake.profile import resolved

    load(pipeline)  # raises ContractError if the pipeline does not exist
    return location(resolved()["store"]).store()


def _fields(letter: DeadLetter) -> dict[str, object]:
    """Return a letter's fields; key and headers are text if they are UTF-8, else hexadecimal digits."""
    return {
        "letter": letter.id,
        **letter.model_dump(mode="json", exclude={"key", "headers"}),
        "key": _text(letter.key),
        "headers": {name: _text(value) for name, value in letter.headers},
    }


def _without_line_break(value: bytes) -> bytes:
    """Remove the line break that editors add at the end of a text; a value in Avro is not text."""
    from cdc_lake.contract.source.avro_records import MAGIC

    is_text = not value.startswith(MAGIC) and not (_text(value) or "").startswith("hex ")
    return value.rstrip(b"\r\n") if is_text else value


def _text(value: bytes | None) -> str | None:
    if value is None:
        return None
    try:
        return value.decode()
    except UnicodeDecodeError:
        return f"hex {value.hex()}"


def _ended(letter: DeadLetter) -> str:
    if letter.closed is None:
        return ""
    by = f" by commit {letter.closed.instant}" if letter.closed.instant else ""
    return f"{letter.closed.how} {letter.closed.at:%Y-%m-%d %H:%M:%S}{by}"


def _value_lines(value: bytes | None) -> list[str]:
    """Return the lines of a value: as text if it is printable, else as a hex dump. A long value is cut to _SHOWN."""
    if not value:
        return ["(the record has no value)" if value is None else "(the value is empty)"]
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = None
    if text is not None and all(each.isprintable() or each in "\n\t" for each in text[:_SHOWN]):
        return [text[:_SHOWN], *_more(len(text), "characters")]
    shown = value[:_SHOWN]
    rows = (shown[start : start + _ROW] for start in range(0, len(shown), _ROW))
    dump = (
        f"{number * _ROW:08x}  {row.hex(' '):<{_ROW * 3}} "
        f"{''.join(chr(byte) if 32 <= byte < 127 else '.' for byte in row)}"
        for number, row in enumerate(rows)
    )
    return [*dump, *_more(len(value), "bytes")]


def _more(size: int, unit: str) -> list[str]:
    return [] if size <= _SHOWN else [f"… {size - _SHOWN:,} more {unit}; `--raw` prints all"]


def _print_report(table: PipelineTable, report: ReplayReport, as_json: bool) -> None:
    import dataclasses

    if as_json:
        typer.echo(json_text({"table": table.lake_table, **dataclasses.asdict(report)}))
        return
    by = f" by commit {report.instant}" if report.instant else ""
    typer.echo(f"{table.lake_table}: {len(report.applied)} applied{by}, {len(report.failed)} still cannot be read")
    if report.overtaken:
        typer.echo(
            f"{table.lake_table}: {len(report.overtaken)} not applied, because a newer snapshot has read the rows"
        )
    for letter, reason in report.failed.items():
        typer.echo(printable(f"  {letter}: {reason}"))
