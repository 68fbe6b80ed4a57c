"""Ids of transactions that write, to wait until earlier transactions have ended."""

from __future__ import annotations

from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case


def new_xid(connection: Connection) -> int:
    """Assign a new transaction id and return it: all transactions that have written by now have lower ids.

    The xmax of pg_current_snapshot() is one past the highest id that has ended, and open transactions can have it or
    higher ids (https://www.postgresql.org/docs/current/functions-info.html#FUNCTIONS-INFO-SNAPSHOT).
    """
    return _id(connection, "pg_current_xact_id()")


def oldest_open_xid(connection: Connection) -> int:
    """Return the id below which all transactions in all databases of the server have ended (xmin)."""
    return _id(connection, "pg_snapshot_xmin(pg_current_snapshot())")


def _id(connection: Connection, function: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(f"select {function}::text::bigint")
        row = cursor.fetchone()
    if row is None:
        raise RuntimeError(f"{function} returned no row")
    return int(row[0])
