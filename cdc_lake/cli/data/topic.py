"""`cdc-lake topic`: list topics, and print their records."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Annotated

import typer
from rich.highlighter import JSONHighlighter
from rich.table import Column
from rich.text import Text

from cdc_lake.cli.layout import console, fold, grid
from cdc_lake.cli.printable import json_text

if TYPE_CHECKING:
    from resources.kafka.records import Message
    from resources.kafka.resource import Kafka

topic = typer.Typer(help="Topics in Kafka and their records.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the command group `topic` to the application."""
    app.add_typer(topic, name="topic")


@topic.command("ls")
def ls(
    count: Annotated[bool, typer.Option("--count", help="Count the committed records by reading all of them.")] = False,
) -> None:
    """List the topics."""
    titles = ("partitions", "records" if count else "offsets", "retention", "cleanup")
    columns = [Column("topic"), *(Column(title, justify="right") for title in titles)]
    rows = []
    kafka = _kafka()
    for name in kafka.topics():
        info = kafka.topic(name)
        if info is None:  # deleted since it was listed
            continue
        ranges = kafka.ranges(name)
        size = kafka.count_records(name, ranges) if count else sum(end - first for first, end in ranges.values())
        retention = _duration(int(info.config["retention.ms"]))
        cells = (name, str(info.partitions), str(size), retention, info.config["cleanup.policy"])
        rows.append([Text(cell) for cell in cells])
    out = console()
    out.print(grid(out, columns, rows))


@topic.command("peek")
def peek(
    name: Annotated[str, typer.Argument(help="The topic.")],
    partition: Annotated[int | None, typer.Option(min=0, help="One partition; default: all of them.")] = None,
    offset: Annotated[int | None, typer.Option(min=0, help="First offset; default: the oldest record.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Maximum number of records.")] = 10,
    tail: Annotated[bool, typer.Option("--tail", help="Print the newest records instead of the oldest.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
) -> None:
    """Print committed records: key, headers, offset, timestamp, value; Avro as JSON."""
    from cdc_lake.pipeline.registry_location import decode_for_display

    if tail and offset is not None:
        raise typer.BadParameter("--tail and --offset cannot be combined. Leave out one of them.")
    kafka = _kafka()
    messages = kafka.tail(name, limit, partition) if tail else kafka.peek(name, partition, offset, limit)
    shown = (
        replace(each, key=decode_for_display(kafka, each.key), value=decode_for_display(kafka, each.value))
        for each in messages
    )
    _print_lines(name, shown) if as_json else _print_pretty(shown)


def _kafka() -> Kafka:
    # Imported late: Dagster takes seconds to import.
    from cdc_lake.profile import resolved

    kafka: Kafka = resolved()["kafka"]
    return kafka


def _print_lines(name: str, messages: Iterable[Message]) -> None:
    for message in messages:
        record = {
            "topic": name,
            "partition": message.partition,
            "offset": message.offset,
            "timestamp": _time(message),
            "key": _readable(message.key),
            "headers": {header: _readable(value) for header, value in message.headers},
            "value": _readable(message.value),
        }
        typer.echo(json_text(record))


def _print_pretty(messages: Iterable[Message]) -> None:
    out = console()
    seen = False
    for message in messages:
        seen = True
        headers = {header: _readable(value) for header, value in message.headers}
        line = Text.assemble(
            (f"partition {message.partition} offset {message.offset}", "bold"),
            f"  {_time(message)}  key ",
            (json_text(_readable(message.key)), "cyan"),
            f"  headers {json_text(headers)}" if headers else "",
        )
        for text in (line, JSONHighlighter()(json_text(_readable(message.value), indent=2))):
            out.print(fold(text, out.width))
    if not seen:
        out.print("no records")


def _readable(raw: bytes | None) -> object:
    """Decode bytes: JSON as its value, other text as a string, other bytes as base64."""
    if raw is None:
        return None
    try:
        text = raw.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(raw).decode()}
    try:
        return json.loads(text)
    except ValueError:
        return text


def _time(message: Message) -> str | None:
    if message.timestamp_ms is None:
        return None
    return datetime.fromtimestamp(message.timestamp_ms / 1000, UTC).isoformat(timespec="milliseconds")


_LONGEST_MS = timedelta.max // timedelta(milliseconds=1)


def _duration(milliseconds: int) -> str:
    # Kafka's largest value is a usual way to write "forever" too.
    return "forever" if milliseconds < 0 or milliseconds > _LONGEST_MS else str(timedelta(milliseconds=milliseconds))
