"""Row-by-row comparison of source and lake: a second verification, for small tables in tests.

It shares no code with `cdc-lake verify`, and reads the lake through Athena instead of Spark.

A row in the source's snapshot was committed before the heartbeat that follows the snapshot. When that heartbeat has
reached Kafka, so have all of the row's changes. Keys with records after the lake's checkpoint are set aside; any other
key has not changed between checkpoint and snapshot, so its two rows must be equal.

All rows pass through this process. Athena's timestamps have milliseconds, so timestamps are compared to the
millisecond.
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal

import numpy as np
from psycopg2 import sql as pg

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.table import timeline
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.pipeline_table import PipelineTable
from resources.athena import Athena
from resources.connect.connector_interface import Connectors
from resources.kafka.resource import Kafka
from resources.postgres.resource import Postgres

Key = tuple[object, ...]
Row = tuple[object, ...]
_EPOCH = datetime(1970, 1, 1)


@dataclass(frozen=True)
class Comparison:
    """The result of a comparison; keys are tuples in the order of the table's key columns."""

    compared: int
    changed_since: int
    missing: Sequence[Key]
    extra: Sequence[Key]
    different: Mapping[Key, Sequence[str]]
    """The columns that differ, by key."""

    @property
    def equal(self) -> bool:
        """Return whether nothing is missing, extra or different."""
        return not (self.missing or self.extra or self.different)


def compare(
    table: PipelineTable,
    postgres: Postgres,
    kafka: Kafka,
    connect: Connectors,
    store: ObjectStore,
    athena: Athena,
    seconds: float,
) -> Comparison:
    """Compare the source table with the lake's view. Waits up to `seconds` for the stream to pass the snapshot."""
    columns = captured_schema.latest(store, table.pipeline.name, table.source_table).columns
    # Read before the source's snapshot: what another run applies from here on counts as changed since.
    commit = timeline.last_commit(store, table.lake_prefix)
    applied = 0 if commit is None or commit.checkpoint is None else commit.checkpoint.manifest
    postgres = table.pipeline.source_postgres(postgres)
    source = _source_rows(table, columns, postgres)
    table_progress.barrier(postgres, kafka, connect, table.pipeline, seconds)
    lake = _lake_rows(table, columns, athena)
    changed = _changed_since(table, columns, kafka, store, applied)
    keys = (source.keys() | lake.keys()) - changed
    names = [column.name for column in columns]
    different = {
        key: [name for name, ours, theirs in zip(names, source[key], lake[key], strict=True) if ours != theirs]
        for key in keys
        if key in source and key in lake and source[key] != lake[key]
    }
    return Comparison(
        compared=len(keys),
        changed_since=len(changed),
        missing=sorted((key for key in keys if key not in lake), key=str),
        extra=sorted((key for key in keys if key not in source), key=str),
        different=different,
    )


def _source_rows(table: PipelineTable, columns: Sequence[captured_schema.Column], postgres: Postgres) -> dict[Key, Row]:
    names = [
        pg.SQL("{}::text" if column.lake_type == "string" else "{}").format(pg.Identifier(column.name))
        for column in columns
    ]
    name = pg.Identifier(table.pipeline.spec.source.schema_, table.name)
    with postgres.connect() as connection, connection.cursor() as cursor:
        cursor.execute(pg.SQL("select {} from {}").format(pg.SQL(", ").join(names), name))
        return _by_key(table, columns, cursor.fetchall())


def _lake_rows(table: PipelineTable, columns: Sequence[captured_schema.Column], athena: Athena) -> dict[Key, Row]:
    names = ", ".join(f'"{column.name.lower()}"' for column in columns)
    found = athena.query(f'SELECT {names} FROM "{table.database}"."{table.view}"')
    return _by_key(table, columns, found.rows)


def _changed_since(
    table: PipelineTable, columns: Sequence[captured_schema.Column], kafka: Kafka, store: ObjectStore, manifest: int
) -> set[Key]:
    """Return the keys with records after the manifest that the lake applied last."""
    applied = Chain(store, table.pipeline.name, table.topic).read(manifest).next_offsets() if manifest else {}
    by_name = {column.name: column for column in columns}
    changed = set()
    for partition, end in kafka.end_offsets(table.topic).items():
        first = applied.get(partition, 0)
        if first == end:
            continue
        for message in kafka.peek(table.topic, partition, first):
            row = json.loads(message.value or b"{}")
            changed.add(tuple(streamed(row.get(name), by_name[name]) for name in table.spec.key))
    return changed


def _by_key(
    table: PipelineTable, columns: Sequence[captured_schema.Column], rows: Sequence[Sequence[object]]
) -> dict[Key, Row]:
    places = [[column.name for column in columns].index(name) for name in table.spec.key]
    kinds = [column.lake_type for column in columns]
    values = [tuple(normal(value, kind) for value, kind in zip(row, kinds, strict=True)) for row in rows]
    return {tuple(row[place] for place in places): row for row in values}


def normal(value: object, lake_type: str) -> object:
    """Return a value in the form that both sides share."""
    result = value
    match value:
        case datetime() if lake_type == "timestamp":
            moment = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
            result = moment.replace(microsecond=moment.microsecond // 1000 * 1000)
        case time() if lake_type == "bigint":  # microseconds since midnight, as Debezium sends it
            result = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
        case memoryview() | bytearray() if lake_type == "binary":
            result = bytes(value)
        case int() | float() | str() | Decimal() if lake_type.startswith("decimal"):
            result = Decimal(str(value))
        case int() | str() if lake_type in {"int", "bigint"}:
            result = int(value)
        case int() | float() | str() | Decimal() if lake_type in {"float", "double"}:
            number = float(np.float32(float(value))) if lake_type == "float" else float(value)
            result = "NaN" if math.isnan(number) else number  # a NaN equals nothing, not even itself
    return result


def streamed(value: object, column: captured_schema.Column) -> object:
    """Return a topic record's value in the form of normal(); jobs/apply/decode.py does this in Spark, for keys."""
    short = bool(column.arguments) and column.arguments[0] <= 3
    match column.base, value:
        case "date", int():
            return date(1970, 1, 1) + timedelta(days=value)
        case "timestamp without time zone", int():
            return normal(_EPOCH + timedelta(microseconds=value * 1000 if short else value), "timestamp")
        case "timestamp with time zone", str():
            return normal(datetime.fromisoformat(value), "timestamp")
        case "time without time zone", int():
            return value * 1000 if short else value
        case "bytea", str():
            return base64.b64decode(value)
        case _:
            return normal(value, column.lake_type)
