"""The signal table: Debezium reads inserts into it from the WAL, as commands to the connector.

During an incremental snapshot, Debezium also writes rows to it that open and close the snapshot's windows
(https://debezium.io/documentation/reference/stable/configuration/signalling.html).
"""

from __future__ import annotations

import json
import re

from psycopg2 import sql
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from resources.postgres.internal_tables.internal_table import InternalTable


def signal_table(name: str) -> InternalTable:
    """Return the definition of a signal table. Debezium reads its columns by position."""
    columns = "id varchar(64) primary key, type varchar(32) not null, data text"
    return InternalTable(name, columns, ("select", "insert", "delete"))


def request_snapshot(connection: Connection, schema: str, name: str, signal_id: str, table: str) -> bool:
    """Request an incremental snapshot of `schema.table`; return False if this signal was sent before.

    The connection has to be in autocommit, so that the signal is in the WAL when this returns.
    """
    data = {"type": "incremental", "data-collections": [f"{re.escape(schema)}[.]{re.escape(table)}"]}
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL("insert into {} values (%s, 'execute-snapshot', %s) on conflict do nothing").format(
                sql.Identifier(schema, name)
            ),
            (signal_id, json.dumps(data)),
        )
        return cursor.rowcount == 1
