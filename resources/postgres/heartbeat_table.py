"""The heartbeat: a one-row table whose updates travel through the WAL like any other change.

An idle database writes no WAL of its own tables, so its slot would hold back that of others without bound,
and nobody could tell an idle source from a broken one. A beat is a change with a known place in the WAL:
once it is seen at some stage, everything committed before it has passed there too.
"""

from __future__ import annotations

from psycopg2 import sql
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from resources.postgres import lsn

TABLE = "cdc_heartbeat"


def ensure_heartbeat(connection: Connection, schema: str) -> bool:
    """Make the heartbeat's table if it is missing; return whether it was."""
    with connection.cursor() as cursor:
        cursor.execute("select to_regclass(format('%%I.%%I', %s::text, %s::text)) is null", (schema, TABLE))
        row = cursor.fetchone()
        cursor.execute(
            sql.SQL(
                "create table if not exists {} (id smallint primary key,"
                " beat_at timestamptz not null, beats bigint not null)"
            ).format(sql.Identifier(schema, TABLE))
        )
    return bool(row and row[0])


def beat(connection: Connection, schema: str) -> int:
    """Beat once; return an LSN that the beat's own change is not before.

    Every transaction that was committed when this was called is streamed before the beat. The connection
    must be in autocommit: the beat is on its way when this returns.
    """
    table = sql.Identifier(schema, TABLE)
    with connection.cursor() as cursor:
        # The insert position is where the next record goes, so the beat's change can't be before it.
        cursor.execute("select pg_current_wal_insert_lsn()::text")
        row = cursor.fetchone()
        cursor.execute(
            sql.SQL(
                "insert into {table} as h (id, beat_at, beats) values (1, clock_timestamp(), 1)"
                " on conflict (id) do update set beat_at = excluded.beat_at, beats = h.beats + 1"
            ).format(table=table)
        )
    if row is None:
        raise RuntimeError("pg_current_wal_insert_lsn() returned no row")
    return lsn.to_int(row[0])
