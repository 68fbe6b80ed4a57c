"""A source table in a real PostgreSQL, and its change events in Debezium's form with real transaction ids and LSNs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from cdc_lake.contract.schema.captured_schema import Column
from resources.postgres import lsn
from resources.postgres.resource import Postgres

COLUMNS = (
    Column(name="id", type="integer", nullable=False),
    Column(name="note", type="text"),
    Column(name="qty", type="bigint"),
    Column(name="amount", type="numeric(12,2)"),
    Column(name="at", type="timestamp with time zone"),
)
KEY = ("id",)
_EVENTS = """
select id, note, qty, amount::text, to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') as at
  from {table} where {where} order by id
"""
Event = dict[str, Any]


@dataclass
class Transaction:
    """An open transaction, and the events of its changes."""

    table: str
    connection: Connection
    events: list[Event] = field(default_factory=list)

    def insert(self, first: int, last: int) -> None:
        """Insert the rows whose ids are `first` to `last`."""
        self._run(
            f"insert into {self.table} select n, case n %% 5 when 0 then null when 1 then '' else 'note ' || n end,"
            " n * 3, n / 7.0, timestamptz '2024-02-29 23:59:59.123456Z' + n * interval '1 hour'"
            " from generate_series(%s, %s) n",
            first,
            last,
        )
        self._add_events("c", f"id between {first} and {last}")

    def update(self, ids: Sequence[int], note: str | None) -> None:
        """Set the note of rows, and add 1 to their qty."""
        self._run(f"update {self.table} set note = %s, qty = qty + 1 where id = any (%s)", note, list(ids))
        self._add_events("u", f"id in ({', '.join(map(str, ids))})")

    def set_without_event(self, key: int, column: str, value: str) -> None:
        """Set a value without an event, as if its record had become a dead letter."""
        self._run(f"update {self.table} set {column} = %s where id = %s", value, key)

    def delete(self, ids: Sequence[int]) -> None:
        """Delete rows."""
        self._add_events("d", f"id in ({', '.join(map(str, ids))})")
        self._run(f"delete from {self.table} where id = any (%s)", list(ids))

    def _run(self, statement: str, *values: object) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute(statement, values)

    def _add_events(self, op: str, where: str) -> None:
        with self.connection.cursor() as cursor:
            cursor.execute("select pg_current_xact_id()::text, pg_current_wal_insert_lsn()::text")
            xid, at = cursor.fetchone() or ("", "")
            cursor.execute(_EVENTS.format(table=self.table, where=where))
            names = [column.name for column in cursor.description or ()]
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
        first = lsn.to_int(at)
        for number, row in enumerate(rows):
            marks: dict[str, object] = {"__op": op, "__db": "devdb", "__schema": "public", "__table": "orders"}
            marks |= {"__lsn": first + number, "__txId": int(xid) % 2**32, "__snapshot": None}
            marks |= {"__source_ts_ms": 1_700_000_000_000, "__deleted": "true" if op == "d" else "false"}
            self.events.append({**row, **marks})


@dataclass
class SourceTable:
    """A source table of one test."""

    postgres: Postgres
    name: str

    def create(self) -> None:
        """Create the table."""
        with self.postgres.connect() as connection, connection.cursor() as cursor:
            cursor.execute(
                f"create table {self.name} (id integer primary key, note text, qty bigint, amount numeric(12,2),"
                " at timestamptz)"
            )

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Open a transaction, which is committed at the end of the block."""
        with self.postgres.connect(autocommit=False) as connection:
            yield Transaction(self.name, connection)

    def rewrite(self) -> None:
        """Rewrite the table, which moves its rows."""
        with self.postgres.connect() as connection, connection.cursor() as cursor:
            cursor.execute(f"vacuum full {self.name}")
