"""Publications: which tables' changes a replication slot hands out."""

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
    all_tables: bool
    held_back: tuple[str, ...]
    """Operations that it doesn't publish, of insert, update and delete."""
    narrowed: tuple[Table, ...]
    """Tables of which it publishes only some rows or columns."""


@dataclass(frozen=True)
class PublicationChange:
    """What `ensure_publication` did."""

    action: Literal["created", "extended", "unchanged"]
    added: tuple[Table, ...]


def publication(connection: Connection, name: str) -> PublicationInfo | None:
    """Return the publication, None if there is none of that name."""
    with connection.cursor() as cursor:
        cursor.execute(
            "select puballtables, pubinsert, pubupdate, pubdelete from pg_publication where pubname = %s", (name,)
        )
        row = cursor.fetchone()
        if row is None:
            return None
        # Reading through to_jsonb, because row filters and column lists came with PostgreSQL 15.
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
    operations = zip(("insert", "update", "delete"), row[1:], strict=True)
    return PublicationInfo(
        name=name,
        tables=tuple((schema, table) for schema, table, _ in rows),
        all_tables=bool(row[0]),
        held_back=tuple(operation for operation, published in operations if not published),
        narrowed=tuple((schema, table) for schema, table, narrowed in rows if narrowed),
    )


def ensure_publication(connection: Connection, name: str, tables: Iterable[Table]) -> PublicationChange:
    """Make the publication cover the tables; tables that it has besides are left in it.

    Raises:
        TableMissing: one of the tables doesn't exist.
        PublicationConflict: the publication exists, and holds back operations, rows or columns of them.
    """
    wanted = tuple(dict.fromkeys(tables))
    for schema, table in wanted:
        table_oid(connection, schema, table)
    found = publication(connection, name)
    if found is None:
        _run(connection, "create publication {} for table {}", name, wanted)
        return PublicationChange("created", wanted)
    if found.held_back:
        raise PublicationConflict(
            f"Publication {name} doesn't publish {', '.join(found.held_back)}. Set it:"
            f" ALTER PUBLICATION {name} SET (publish = 'insert, update, delete'), or name another publication."
        )
    if narrowed := [f"{schema}.{table}" for schema, table in wanted if (schema, table) in found.narrowed]:
        raise PublicationConflict(
            f"Publication {name} has a row filter or a column list on {', '.join(narrowed)}: changes would be"
            " missing. Remove it with ALTER PUBLICATION … SET TABLE, or name another publication."
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
