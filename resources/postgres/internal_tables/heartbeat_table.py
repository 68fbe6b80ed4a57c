"""The heartbeat: a one-row table whose updates are streamed like any other change.

Without heartbeats, a slot advances only when a captured table changes. If none does, the server keeps the WAL of all
its databases without bound, and an idle source looks like a broken one. A heartbeat is a change with a known LSN: a
stage that has received it has also received everything that was committed before it.
"""

from __future__ import annotations

from psycopg2 import sql
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from resources.postgres import lsn
from resources.postgres.internal_tables.internal_table import InternalTable

HEARTBEAT = InternalTable(
    "cdc_heartbeat",
    "id smallint primary key, beat_at timestamptz not null, beats bigint not null",
    ("select", "insert", "update"),
)


def write_heartbeat(connection: Connection, schema: str) -> int:
    """Update the heartbeat row; return an LSN that is at or before the update's.

    Every transaction that was committed when this was called is streamed before the update. The connection has to be
    in autocommit, so that the update is committed when this returns.
    """
    table = sql.Identifier(schema, HEARTBEAT.name)
    with connection.cursor() as cursor:
        # The insert position is where the next WAL record goes, so the update cannot be before it.
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
