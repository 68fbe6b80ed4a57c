"""Trino's and PostgreSQL's SQL on SQLite, so that unit tests execute a check's SQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from decimal import Decimal
from threading import RLock
from typing import Any, cast

import sqlglot
from psycopg2 import sql as pg
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case
from sqlglot import exp

Row = tuple[Any, ...]


class _ExactSum:
    """An exact sum() of decimals, which SQLite stores as text."""

    def __init__(self) -> None:
        self.total: Decimal | None = None

    def step(self, value: object) -> None:
        if value is not None:
            self.total = (self.total or Decimal(0)) + Decimal(str(value))

    def finalize(self) -> str | None:
        return None if self.total is None else str(self.total)


class Sql:
    """One server; a schema is created when it is first used."""

    def __init__(self, dialect: str) -> None:
        self.dialect = dialect
        self.statements: list[str] = []
        self._db = sqlite3.connect(":memory:", check_same_thread=False)
        self._lock = RLock()  # tables of a run are materialised in threads
        self._db.create_aggregate("sum", 1, _ExactSum)  # type: ignore[arg-type]  # its stub wants an int

    def make(self, schema: str, table: str, columns: Sequence[str], rows: Sequence[Sequence[object]] = ()) -> None:
        """Create a table with rows, and its schema if missing; replace an existing table."""
        with self._lock:
            if schema not in {row[1] for row in self._db.execute("PRAGMA database_list")}:
                self._db.execute(f"ATTACH ':memory:' AS \"{schema}\"")
            name = f'"{schema}"."{table}"'
            self._db.execute(f"DROP TABLE IF EXISTS {name}")
            self._db.execute(f"CREATE TABLE {name} ({', '.join(_quoted(columns))})")
            values = [[str(value) if isinstance(value, Decimal) else value for value in row] for row in rows]
            self._db.executemany(f"INSERT INTO {name} VALUES ({', '.join('?' * len(columns))})", values)

    def run(self, statement: str) -> tuple[list[str], list[Row]]:
        """Run a statement. Return its columns and rows."""
        self.statements.append(statement)
        tree = sqlglot.parse_one(statement, read=self.dialect)
        for counted in list(tree.find_all(exp.CountIf)):  # in SQLite a sum, which is NULL without rows
            counted.replace(exp.Count(this=exp.case().when(counted.this, "1")))
        with self._lock:
            if isinstance(tree, exp.Create) and tree.args.get("replace"):
                self._db.execute(f"DROP {tree.kind} IF EXISTS {tree.this.sql('sqlite')}")
                tree.set("replace", False)
            cursor = self._db.execute(tree.sql("sqlite"))
            return [column[0] for column in cursor.description or ()], cursor.fetchall()


def _quoted(names: Sequence[str]) -> Iterator[str]:
    return (f'"{name}"' for name in names)


class SqlCursor:
    """The used part of psycopg2's cursor."""

    def __init__(self, server: Sql) -> None:
        self._server = server
        self._rows: list[Row] = []
        self.rowcount = -1

    def __enter__(self) -> SqlCursor:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def execute(self, statement: str | pg.Composable) -> None:
        _, self._rows = self._server.run(statement if isinstance(statement, str) else rendered(statement))
        self.rowcount = len(self._rows)

    def fetchall(self) -> list[Row]:
        """Return all remaining rows."""
        return self.fetchmany(len(self._rows))

    def fetchmany(self, size: int) -> list[Row]:
        """Return the next rows."""
        taken, self._rows = self._rows[:size], self._rows[size:]
        return taken

    def fetchone(self) -> Row | None:
        """Return the next row."""
        return next(iter(self.fetchmany(1)), None)


class SqlConnection:
    """The used part of psycopg2's connection."""

    def __init__(self, server: Sql) -> None:
        self._server = server

    def cursor(self) -> SqlCursor:
        return SqlCursor(self._server)


@contextmanager
def connected(server: Sql) -> Iterator[Connection]:
    """Return a connection to a server."""
    yield cast("Connection", SqlConnection(server))


def rendered(statement: pg.Composable) -> str:
    """Return the text of a composed statement; psycopg2's own method needs a connection."""
    match statement:
        case pg.Composed():
            return "".join(rendered(part) for part in statement.seq)
        case pg.SQL():
            return statement.string
        case pg.Identifier():
            return ".".join(_quoted(statement.strings))
        case _:
            raise TypeError(f"no rendering of {statement!r}")
