"""Reads a PostgreSQL table's columns and their types from the catalog."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from psycopg2 import sql
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from resources.postgres.debezium_constants import debezium_text
from resources.postgres.table_queries import key_is_deferrable, primary_key, table_oid

TypeKind = Literal["base", "array", "composite", "domain", "enum", "pseudo", "range", "multirange"]

KINDS: dict[str, TypeKind] = {
    "b": "base",
    "c": "composite",
    "d": "domain",
    "e": "enum",
    "p": "pseudo",
    "r": "range",
    "m": "multirange",
}

# Resolves domains, also nested ones, to their base type, and arrays to their element type. Domains below an array are
# not resolved, since Debezium writes such elements in another format. The modifier nearest to the column applies.
# A type is an array type if its element type's typarray refers to it, which excludes int2vector.
_COLUMNS = """
with recursive chain as (
    select a.attnum, a.atttypid as oid, a.atttypmod as typmod, 0 as depth, false as listed
      from pg_attribute a
     where a.attrelid = %(oid)s and a.attnum > 0 and not a.attisdropped
    union all
    select c.attnum,
           case when t.typtype = 'd' then t.typbasetype else t.typelem end,
           case when t.typtype = 'd' and c.typmod = -1 then t.typtypmod else c.typmod end,
           c.depth + 1,
           c.listed or t.typtype <> 'd'
      from chain c join pg_type t on t.oid = c.oid
     where (t.typtype = 'd' and not c.listed)
        or exists (select from pg_type e where e.oid = t.typelem and e.typarray = t.oid)
), base as (
    select distinct on (attnum) attnum, oid, typmod, listed from chain order by attnum, depth desc
)
select a.attname,
       format_type(a.atttypid, a.atttypmod),
       format_type(b.oid, null) || case when b.listed then '[]' else '' end,
       case when b.listed then 'A' else t.typtype::text end,
       not (a.attnotnull or exists (select from chain c join pg_type d on d.oid = c.oid
                               where c.attnum = a.attnum and d.typnotnull)),
       a.attnum,
       case when a.attgenerated = '' then pg_get_expr(d.adbin, d.adrelid) end,
       a.attgenerated <> '',
       a.attgenerated = 'v',
       format_type(b.oid, b.typmod) || case when b.listed then '[]' else '' end,
       t.typtype::text,
       case when a.atthasmissing then (a.attmissingval::text::text[])[1] end
  from pg_attribute a
  join base b on b.attnum = a.attnum
  join pg_type t on t.oid = b.oid
  left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
 where a.attrelid = %(oid)s
 order by a.attnum
"""


@dataclass(frozen=True)
class ColumnInfo:
    """One column of a table."""

    name: str
    type_name: str
    """The declared type with its modifier, such as `numeric(6,2)` or the name of a domain."""
    base_type: str
    """The type without modifiers and with domains resolved, such as `numeric`."""
    nullable: bool
    position: int
    """The attribute number: it never changes; numbers of dropped columns are not reused."""
    default: str | None
    """The default's expression in SQL; None for a generated column."""
    kind: TypeKind
    generated: bool
    """Whether it is a generated column. A publication can include stored ones (PostgreSQL 18), but no virtual ones."""
    resolved_type: str | None = None
    """The type with its modifier and with domains above arrays resolved, such as `integer[]`; None: as type_name."""
    element_kind: TypeKind = "base"
    """The kind of the type below domains and arrays."""
    virtual: bool = False
    """Whether it is a generated column that is computed when it is read, and not stored."""
    missing: str | None = None
    """The value in rows that are older than the column, in PostgreSQL's text format: ALTER TABLE … ADD COLUMN … DEFAULT
    stores it in the catalog and rewrites no row. None if it is NULL, or if the table was rewritten later."""


@dataclass(frozen=True)
class Storage:
    """The identity of a table and of its file: a re-created table has another oid, a rewritten one another file."""

    oid: int
    filenode: int | None
    """None for a partitioned table, which has no file of its own."""


@dataclass(frozen=True)
class TableCatalog:
    """The catalog's description of a table at one moment."""

    columns: tuple[ColumnInfo, ...]
    key: tuple[str, ...]
    """The primary key's columns; empty if there is no primary key."""
    storage: Storage
    missing: Mapping[str, str] = field(default_factory=dict)
    """By column: the value in rows that are older than the column, in Debezium's format; without unknown values."""
    children: tuple[str, ...] = ()
    """Partitions and inheriting tables, which contain rows of this one."""
    deferrable: bool = False
    """Whether the primary key is deferrable (table_queries.key_is_deferrable())."""
    row_security: bool = False
    """Whether policies hide rows of it from the connection's user (row_security_active())."""


_UNSUPPORTED_DATES = """
    coalesce(bool_or(
        isfinite({0}) and ({0} < date '0001-01-01' or {0} between date '1582-10-05' and date '1582-10-14')
    ), false)
"""


def columns(connection: Connection, schema: str, table: str) -> tuple[ColumnInfo, ...]:
    """Return the table's columns in their order; raise TableMissing if there is no such table."""
    with connection.cursor() as cursor:
        cursor.execute(_COLUMNS, {"oid": table_oid(connection, schema, table)})
        return tuple(
            ColumnInfo(
                name=row[0],
                type_name=row[1],
                base_type=row[2],
                kind="array" if row[3] == "A" else KINDS[row[3]],
                nullable=row[4],
                position=row[5],
                default=row[6],
                generated=row[7],
                virtual=row[8],
                resolved_type=row[9],
                element_kind=KINDS[row[10]],
                missing=row[11],
            )
            for row in cursor
        )


def storage(connection: Connection, schema: str, table: str) -> Storage:
    """Return the table's oid and file; raise TableMissing if there is no such table."""
    with connection.cursor() as cursor:
        oid = table_oid(connection, schema, table)
        cursor.execute("select pg_relation_filenode(%s)", (oid,))
        row = cursor.fetchone()
    return Storage(oid, None if row is None or row[0] is None else int(row[0]))


def catalog(connection: Connection, schema: str, table: str) -> TableCatalog:
    """Return the table's description, which is consistent if the connection is in a REPEATABLE READ transaction.

    Raises TableMissing if there is no such table.
    """
    found = columns(connection, schema, table)
    texts = {
        column.name: debezium_text(connection, column.resolved_type or column.type_name, column.missing)
        for column in found
        if column.missing is not None
    }
    return TableCatalog(
        columns=found,
        key=primary_key(connection, schema, table),
        storage=storage(connection, schema, table),
        missing={name: text for name, text in texts.items() if text is not None},
        children=_children(connection, schema, table),
        deferrable=key_is_deferrable(connection, schema, table),
        row_security=_row_security(connection, schema, table),
    )


def _row_security(connection: Connection, schema: str, table: str) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("select row_security_active(%s::oid)", (table_oid(connection, schema, table),))
        row = cursor.fetchone()
    return bool(row and row[0])


def _children(connection: Connection, schema: str, table: str) -> tuple[str, ...]:
    with connection.cursor() as cursor:
        cursor.execute(
            "select inhrelid::regclass::text from pg_inherits where inhparent = %s order by 1",
            (table_oid(connection, schema, table),),
        )
        return tuple(name for (name,) in cursor)


def unsupported_dates(connection: Connection, schema: str, table: str) -> tuple[str, ...]:
    """Return the columns of type date that contain days which Debezium's snapshot writes as other days.

    These are days before the year 1, except -infinity, and 5 to 14 October 1582, which Java's calendar omits. Scans the
    table.
    """
    names = [column.name for column in columns(connection, schema, table) if column.base_type == "date"]
    if not names:
        return ()
    expressions = sql.SQL(", ").join(sql.SQL(_UNSUPPORTED_DATES).format(sql.Identifier(name)) for name in names)
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL("select {} from {}").format(expressions, sql.Identifier(schema, table)))
        row = cursor.fetchone() or ()
    return tuple(name for name, affected in zip(names, row, strict=True) if affected)


def publishes_generated(connection: Connection, publication: str) -> bool:
    """Return whether the publication contains the values of stored generated columns (PostgreSQL 18)."""
    with connection.cursor() as cursor:
        # to_jsonb, because the column pubgencols exists only from PostgreSQL 18 on.
        cursor.execute(
            "select coalesce(to_jsonb(p) ->> 'pubgencols' = 's', false) from pg_publication p where pubname = %s",
            (publication,),
        )
        row = cursor.fetchone()
    return bool(row and row[0])


def has_values(connection: Connection, schema: str, table: str, column: str) -> bool:
    """Return whether any row has a value in the column; scans the table if no row has one."""
    with connection.cursor() as cursor:
        cursor.execute(
            sql.SQL("select exists (select from {} where {} is not null)").format(
                sql.Identifier(schema, table), sql.Identifier(column)
            )
        )
        row = cursor.fetchone()
    return bool(row and row[0])
