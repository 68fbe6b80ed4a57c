"""Bounds of the ids of transactions that write, to wait until earlier transactions have ended."""

from __future__ import annotations

from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case


def next_xid(connection: Connection) -> int:
    """Return the id after the newest transaction that has ended (xmax); an open transaction can have a higher id."""
    return _bounds(connection)[1]


def oldest_open_xid(connection: Connection) -> int:
    """Return the id below which all transactions in all databases of the server have ended (xmin)."""
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
