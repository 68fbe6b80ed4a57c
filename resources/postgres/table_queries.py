"""Queries about one PostgreSQL table: existence, primary key, row count, replica identity."""

from __future__ import annotations

from typing import Literal

from psycopg2 import sql
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from resources.errors import TableMissing

ReplicaIdentity = Literal["default", "nothing", "full", "index"]

_IDENTITIES: dict[str, ReplicaIdentity] = {"d": "default", "n": "nothing", "f": "full", "i": "index"}


def table_oid(connection: Connection, schema: str, table: str) -> int:
    """Return the oid of an ordinary or partitioned table.

    Raises:
        TableMissing: there is no such table.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "select c.oid from pg_class c join pg_namespace n on n.oid = c.relnamespace"
            " where n.nspname = %s and c.relname = %s and c.relkind in ('r', 'p')",
            (schema, table),
        )
        row = cursor.fetchone()
    if row is None:
        raise TableMissing(
            f"Cannot use table {schema}.{table}: database {connection.info.dbname} has no such table. Create"
            " it, or correct its name."
        )
    return int(row[0])


def primary_key(connection: Connection, schema: str, table: str) -> tuple[str, ...]:
    """Return the primary key's columns in the key's order; empty if there is no primary key."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select a.attname from pg_index i"
            " cross join lateral unnest(i.indkey::int2[]) with ordinality as k(attnum, place)"
            " join pg_attribute a on a.attrelid = i.indrelid and a.attnum = k.attnum"
            " where i.indrelid = %s and i.indisprimary and k.place <= i.indnkeyatts order by k.place",
            (table_oid(connection, schema, table),),
        )
        return tuple(row[0] for row in cursor)


def key_is_deferrable(connection: Connection, schema: str, table: str) -> bool:
    """Return whether the primary key is checked only at the end of a statement or transaction.

    With such a key, a statement can give a row the key that another row still has (`set id = id + 1`). The last
    change event of a key can then be the delete of its previous row, although a row with that key exists.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "select exists (select from pg_index where indrelid = %s and indisprimary and not indimmediate)",
            (table_oid(connection, schema, table),),
        )
        row = cursor.fetchone()
    return bool(row and row[0])


def row_count(connection: Connection, schema: str, table: str) -> int:
    """Return the table's number of rows by a scan, because the statistics contain only an estimate."""
    table_oid(connection, schema, table)
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("select count(*) from {}").format(sql.Identifier(schema, table)))
        row = cursor.fetchone()
    return int(row[0]) if row else 0


def replica_identity(connection: Connection, schema: str, table: str) -> ReplicaIdentity:
    """Return the replica identity: which columns of the old row an UPDATE or DELETE writes to the WAL."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select relreplident::text from pg_class where oid = %s", (table_oid(connection, schema, table),)
        )
        row = cursor.fetchone()
    if row is None:
        raise TableMissing(f"Cannot read the replica identity of {schema}.{table}: the table was dropped meanwhile.")
    return _IDENTITIES[row[0]]


def set_replica_identity(
    connection: Connection, schema: str, table: str, identity: Literal["default", "nothing", "full"]
) -> bool:
    """Set the replica identity; return whether it changed."""
    if replica_identity(connection, schema, table) == identity:
        return False
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL("alter table {} replica identity {}").format(
                sql.Identifier(schema, table), sql.SQL(identity.upper())
            )
        )
    return True
