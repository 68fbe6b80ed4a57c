"""Check the server that a sample is loaded into, and create the sample's database."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

from psycopg2 import errors, sql
from psycopg2.extensions import cursor

from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.errors import LoadError

OLDEST_SERVER = 120000
"""server_version_num of the oldest PostgreSQL that the outbox's triggers and SQL support."""
_MAINTENANCE_DATABASE = "postgres"


def require_supported(cur: cursor, parameters: ConnectionParameters) -> str:
    """Return the server's wal_level. Raises LoadError if the server is too old."""
    version = cur.connection.server_version
    if version < OLDEST_SERVER:
        raise LoadError(
            f"Cannot load into {parameters}: the server is PostgreSQL {version // 10000}, but the sample needs "
            f"{OLDEST_SERVER // 10000} or newer. Load into another server."
        )
    cur.execute("SHOW wal_level")
    row = cur.fetchone()
    return str(row[0]) if row else ""


def ensure_database(parameters: ConnectionParameters) -> bool:
    """Create the database if the server does not have it; return whether it was created.

    Raises LoadError if the server cannot be reached or the user may not create databases.
    """
    with closing(replace(parameters, dbname=_MAINTENANCE_DATABASE).connect()) as conn:
        conn.autocommit = True
        with conn.cursor() as cur:
            cur.execute("SELECT 1 FROM pg_database WHERE datname = %s", (parameters.dbname,))
            if cur.fetchone():
                return False
            try:
                cur.execute(
                    sql.SQL("CREATE DATABASE {} TEMPLATE template0 ENCODING 'UTF8'").format(
                        sql.Identifier(parameters.dbname)
                    )
                )
            except errors.InsufficientPrivilege as error:
                raise LoadError(
                    f"Cannot create database {parameters.dbname}: user {parameters.user} is not allowed to create "
                    "databases. Create it as another user, or choose an existing database with --dbname."
                ) from error
            return True
