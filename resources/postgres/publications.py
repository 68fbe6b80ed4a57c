"""Reads, creates and extends publications, which define the tables whose changes are streamed."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from psycopg2 import sql
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from resources.errors import PublicationConflict
from resources.postgres.table_queries import table_oid

Table = tuple[str, str]
"""Schema and name."""


@dataclass(frozen=True)
class PublicationInfo:
    """One publication."""

    name: str
    tables: tuple[Table, ...]
    unpublished: tuple[str, ...]
    """Which of insert, update and delete it does not publish."""
    filtered: tuple[Table, ...]
    """Tables with a row filter or a column list."""


@dataclass(frozen=True)
class PublicationChange:
    """The result of `ensure_publication`."""

    action: Literal["created", "extended", "unchanged"]
    added: tuple[Table, ...]


def publication(connection: Connection, name: str) -> PublicationInfo | None:
    """Return the publication, None if it does not exist."""
    with connection.cursor() as cursor:
        cursor.execute("select pubinsert, pubupdate, pubdelete from pg_publication where pubname = %s", (name,))
        row = cursor.fetchone()
        if row is None:
            return None
        # to_jsonb, because the columns for row filters and column lists exist only from PostgreSQL 15 on.
        cursor.execute(
            "select t.schemaname::text, t.tablename::text,"
            " exists (select from pg_publication p join pg_publication_rel r on r.prpubid = p.oid"
            "         join pg_class c on c.oid = r.prrelid join pg_namespace n on n.oid = c.relnamespace"
            "         where p.pubname = t.pubname and n.nspname = t.schemaname and c.relname = t.tablename"
            "         and (to_jsonb(r) ->> 'prqual' is not null or to_jsonb(r) ->> 'prattrs' is not null))"
            " from pg_publication_tables t where t.pubname = %s order by 1, 2",
            (name,),
        )
        rows = cursor.fetchall()
    operations = zip(("insert", "update", "delete"), row, strict=True)
    return PublicationInfo(
        name=name,
        tables=tuple((schema, table) for schema, table, _ in rows),
        unpublished=tuple(operation for operation, published in operations if not published),
        filtered=tuple((schema, table) for schema, table, filtered in rows if filtered),
    )


def ensure_publication(connection: Connection, name: str, tables: Iterable[Table]) -> PublicationChange:
    """Create the publication, or add missing tables to it; other tables stay in it.

    Raises:
        TableMissing: one of the tables does not exist.
        PublicationConflict: the publication exists and does not publish all operations, rows and columns of the tables.
    """
    wanted = tuple(dict.fromkeys(tables))
    for schema, table in wanted:
        table_oid(connection, schema, table)
    found = publication(connection, name)
    if found is None:
        _run(connection, "create publication {} for table {}", name, wanted)
        return PublicationChange("created", wanted)
    if found.unpublished:
        raise PublicationConflict(
            f"Cannot use publication {name}: it does not publish {', '.join(found.unpublished)}. Run ALTER PUBLICATION"
            f" {name} SET (publish = 'insert, update, delete'), or choose another publication."
        )
    if filtered := [f"{schema}.{table}" for schema, table in wanted if (schema, table) in found.filtered]:
        raise PublicationConflict(
            f"Cannot use publication {name}: it has a row filter or a column list on {', '.join(filtered)}, so changes"
            " would be missing. Remove it with ALTER PUBLICATION … SET TABLE, or choose another publication."
        )
    missing = tuple(table for table in wanted if table not in found.tables)
    if not missing:
        return PublicationChange("unchanged", ())
    _run(connection, "alter publication {} add table {}", name, missing)
    return PublicationChange("extended", missing)


def _run(connection: Connection, statement: str, name: str, tables: tuple[Table, ...]) -> None:
    listed = sql.SQL(", ").join(sql.Identifier(*table) for table in tables)
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(statement).format(sql.Identifier(name), listed))
