"""Identities of a server and of a publication, to detect a replaced server or a re-created publication."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from resources.postgres import lsn


@dataclass(frozen=True)
class ServerIdentity:
    """A database cluster at one moment."""

    system_identifier: str
    """The number that initdb gave it; base backups and replicas have the same one."""
    timeline: int
    """Increases each time that a server becomes writable after a recovery: point-in-time recovery, promotion."""
    lsn: int
    """The end of its WAL."""


@dataclass(frozen=True)
class PublicationIdentity:
    """The catalog's ids of a publication: they change if it is re-created, or if a table is removed and added again."""

    oid: int
    version: str
    """The transaction that wrote the publication's row (xmin); it changes with every change of the settings."""
    tables: Mapping[str, int]
    """By `schema.table`: the oid of the table's row in pg_publication_rel; 0 for a table that is not listed by name."""


def server(connection: Connection) -> ServerIdentity:
    """Return the identity of the server; it must be a primary."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select (select system_identifier::text from pg_control_system()),"
            " ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int, pg_current_wal_lsn()::text"
        )
        row = cursor.fetchone()
    if row is None:
        raise RuntimeError("pg_control_system() returned no row")
    return ServerIdentity(row[0], row[1], lsn.to_int(row[2]))


def publication(connection: Connection, name: str) -> PublicationIdentity | None:
    """Return the identity of the publication, None if it does not exist."""
    with connection.cursor() as cursor:
        cursor.execute("select oid::bigint, xmin::text from pg_publication where pubname = %s", (name,))
        row = cursor.fetchone()
        if row is None:
            return None
        cursor.execute(
            "select t.schemaname || '.' || t.tablename, coalesce((select r.oid::bigint from pg_publication_rel r"
            "   join pg_class c on c.oid = r.prrelid join pg_namespace n on n.oid = c.relnamespace"
            "   where r.prpubid = %s and n.nspname = t.schemaname and c.relname = t.tablename), 0)"
            " from pg_publication_tables t where t.pubname = %s",
            (row[0], name),
        )
        return PublicationIdentity(row[0], row[1], dict(cursor.fetchall()))
