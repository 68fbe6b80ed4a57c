"""Fill tables of a sample: with generated rows, or with a delimited file."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import cursor
from psycopg2.extras import execute_values

from cdc_lake.samples.errors import LoadError

Value = object
Row = tuple[Value, ...]
Progress = Callable[[str, int, int], None]
"""Called with a name, the number of finished parts, and their total."""


def no_progress(_what: str, _done: int, _total: int) -> None:
    """Show no progress."""


@dataclass(frozen=True)
class Table:
    """A table's rows, with values for `columns`; other columns get their defaults."""

    name: str
    columns: tuple[str, ...]
    rows: tuple[Row, ...]


def table(name: str, columns: str, rows: Iterable[Row]) -> Table:
    """Return a table; the names of `columns` are separated by blanks."""
    return Table(name, tuple(columns.split()), tuple(rows))


def insert(cur: cursor, schema: str, tables: tuple[Table, ...], progress: Progress) -> None:
    """Insert generated rows, parents before children."""
    for done, each in enumerate(tables, start=1):
        statement = sql.SQL("INSERT INTO {} ({}) VALUES %s").format(
            sql.Identifier(schema, each.name), sql.SQL(", ").join(map(sql.Identifier, each.columns))
        )
        if each.rows:
            execute_values(cur, statement, each.rows, page_size=1000)
        _advance_sequences(cur, schema, each)
        progress("generated data", done, len(tables))


def _advance_sequences(cur: cursor, schema: str, inserted: Table) -> None:
    """Set the sequences of the table's columns, so that the next row gets a new number."""
    target = sql.Identifier(schema, inserted.name)
    cur.execute(
        "SELECT * FROM (SELECT name, pg_get_serial_sequence(%s, name) AS sequence FROM unnest(%s) name) columns "
        "WHERE sequence IS NOT NULL",
        (target.as_string(cur), list(inserted.columns)),
    )
    for column, sequence in cur.fetchall():
        newest = sql.SQL("SELECT setval(%s, max({})) FROM {}").format(sql.Identifier(column), target)
        cur.execute(newest, (sequence,))


def copy(cur: cursor, schema: str, name: str, file: Path, delimiter: str) -> None:
    """Copy a file with a header line into a table; an empty field without quotes is NULL.

    Raises LoadError if the file cannot be read, its header has a name that is not a column of the table, or a line
    does not fit the table's types or constraints.
    """
    try:
        with file.open(encoding="utf-8-sig", newline="") as lines:
            for _ in lines:  # raises UnicodeDecodeError; during COPY, PostgreSQL would report it in other words
                pass
            lines.seek(0)
            header = next(csv.reader(lines, delimiter=delimiter), [])
            cur.execute(sql.SQL("SELECT * FROM {} LIMIT 0").format(sql.Identifier(schema, name)))
            columns = [each.name for each in cur.description or ()]
            unknown = [each for each in header if each not in columns]
            if unknown or not header:
                found = f"unknown names ({', '.join(map(repr, unknown))})" if unknown else "no names"
                raise LoadError(
                    f"Cannot load {file} into {name}: its first line contains {found}. Nothing was loaded. Begin the "
                    f"file with names of columns, separated by '{delimiter}': {', '.join(columns)}."
                )
            into = sql.SQL("COPY {} ({}) FROM STDIN (FORMAT csv, DELIMITER {})").format(
                sql.Identifier(schema, name),
                sql.SQL(", ").join(map(sql.Identifier, header)),
                sql.Literal(delimiter),
            )
            cur.copy_expert(into, lines)
    except OSError as error:
        raise LoadError(f"Cannot read {file}: {error.strerror}. Nothing was loaded. Give a readable file.") from error
    except UnicodeDecodeError as error:
        reason = f"it is not UTF-8 ({error.reason} at byte {error.start})"
        raise LoadError(f"Cannot load {file}: {reason}. Nothing was loaded. Convert the file to UTF-8.") from error
    except (psycopg2.DataError, psycopg2.IntegrityError) as error:
        raise LoadError(
            f"Cannot load {file} into {name}: {str(error).strip()}\nNothing was loaded. Correct the line."
        ) from error


def count(cur: cursor, schema: str, names: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """Return the name and number of rows of each table."""
    counts = []
    for name in names:
        cur.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(schema, name)))
        counts.append((name, int((cur.fetchone() or (0,))[0])))
    return tuple(counts)
