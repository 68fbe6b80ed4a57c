"""Creates the tables that a pipeline adds to the source's schema: its heartbeat table and its signal table."""

from __future__ import annotations

from dataclasses import dataclass

from psycopg2 import sql
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from resources.postgres import grants
from resources.postgres.grants import Privilege


@dataclass(frozen=True)
class InternalTable:
    """A table that the pipeline adds: its name, its columns in SQL, and the capture role's privileges on it."""

    name: str
    columns: str
    privileges: tuple[Privilege, ...]


def ensure(connection: Connection, schema: str, table: InternalTable, role: str = "") -> bool:
    """Create the table if it is missing, and grant the role its privileges; return whether it was missing.

    Raises:
        AccessRefused: there is no such role, or the user may not grant this.
    """
    with connection.cursor() as cursor:
        cursor.execute("select to_regclass(format('%%I.%%I', %s::text, %s::text)) is null", (schema, table.name))
        row = cursor.fetchone()
        cursor.execute(
            sql.SQL("create table if not exists {} ({})").format(
                sql.Identifier(schema, table.name), sql.SQL(table.columns)
            )
        )
    if role:
        grants.grant(connection, role, [(schema, table.name)], table.privileges)
    return bool(row and row[0])
