"""Transactions that write: which have ended."""

from __future__ import annotations

from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case


def next_xid(connection: Connection) -> int:
    """Return an id that every transaction which has written by now is below; prepared transactions count."""
    return _bounds(connection)[1]


def oldest_open_xid(connection: Connection) -> int:
    """Return the id below which all transactions of the server have ended, in any of its databases."""
    return _bounds(connection)[0]


def _bounds(connection: Connection) -> tuple[int, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "select pg_snapshot_xmin(s)::text::bigint, pg_snapshot_xmax(s)::text::bigint from pg_current_snapshot() s"
        )
        row = cursor.fetchone()
    if row is None:
        raise RuntimeError("pg_current_snapshot() returned no row")
    return row[0], row[1]
