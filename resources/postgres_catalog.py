"""The columns of a PostgreSQL table and their types, as the catalog has them.

Here: one query, on a connection that is handed in. Not here: what a type becomes in the lake.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from resources.postgres_tables import table_oid

TypeKind = Literal["base", "array", "composite", "enum", "pseudo", "range", "multirange"]

_KINDS: dict[str, TypeKind] = {
    "b": "base",
    "c": "composite",
    "e": "enum",
    "p": "pseudo",
    "r": "range",
    "m": "multirange",
}

# A domain is followed to the type below it, however many lie between; the modifier that counts is the one
# nearest to the column. A numeric's modifier is decoded as in numerictypmodin() of PostgreSQL's numeric.c.
_COLUMNS = """
with recursive chain as (
    select a.attnum, a.atttypid as oid, a.atttypmod as typmod, 0 as depth
      from pg_attribute a
     where a.attrelid = %(oid)s and a.attnum > 0 and not a.attisdropped
    union all
    select c.attnum, t.typbasetype, case when c.typmod = -1 then t.typtypmod else c.typmod end, c.depth + 1
      from chain c join pg_type t on t.oid = c.oid
     where t.typtype = 'd'
), base as (
    select distinct on (attnum) attnum, oid, typmod from chain order by attnum, depth desc
)
select a.attname,
       format_type(a.atttypid, a.atttypmod),
       format_type(b.oid, null),
       case when t.typcategory = 'A' then 'A' else t.typtype::text end,
       not (a.attnotnull or exists (select from chain c join pg_type d on d.oid = c.oid
                               where c.attnum = a.attnum and d.typnotnull)),
       a.attnum,
       case when b.oid = 'numeric'::regtype and b.typmod <> -1 then ((b.typmod - 4) >> 16) & 65535 end,
       case when b.oid = 'numeric'::regtype and b.typmod <> -1
            then (((b.typmod - 4) & 2047) # 1024) - 1024 end,
       case when a.attgenerated = '' then pg_get_expr(d.adbin, d.adrelid) end,
       a.attgenerated <> ''
  from pg_attribute a
  join base b on b.attnum = a.attnum
  join pg_type t on t.oid = b.oid
  left join pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
 where a.attrelid = %(oid)s
 order by a.attnum
"""


@dataclass(frozen=True)
class ColumnInfo:
    """One column of a table, as the catalog has it."""

    name: str
    type_name: str
    """The declared type with its modifier, such as `numeric(6,2)` or the name of a domain."""
    base_type: str
    """The type without modifiers and with domains followed to what they are made of, such as `numeric`."""
    nullable: bool
    position: int
    """The attribute number: it has holes where columns were dropped, and never changes."""
    numeric_precision: int | None
    """Digits in all; None for other types and for numeric without a precision."""
    numeric_scale: int | None
    default: str | None
    """The default's expression in SQL; None for a generated column."""
    kind: TypeKind
    generated: bool
    """Generated columns aren't published unless the publication says so (PostgreSQL 18)."""


def columns(connection: Connection, schema: str, table: str) -> tuple[ColumnInfo, ...]:
    """Return the table's columns in their order; raise TableMissing if there is no such table."""
    with connection.cursor() as cursor:
        cursor.execute(_COLUMNS, {"oid": table_oid(connection, schema, table)})
        return tuple(
            ColumnInfo(
                name=name,
                type_name=type_name,
                base_type=base_type,
                nullable=nullable,
                position=position,
                numeric_precision=precision,
                numeric_scale=scale,
                default=default,
                kind="array" if kind == "A" else _KINDS[kind],
                generated=generated,
            )
            for name, type_name, base_type, kind, nullable, position, precision, scale, default, generated in cursor
        )
