"""The tables, views, routines, sequences and types of a schema: find them, mark those of a sample, and drop them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from psycopg2 import sql
from psycopg2.extensions import cursor

# Left out, because they are dropped with another object: partitions, sequences of a column, row and array types, and
# the objects of an extension (pg_depend's deptype a, i and e).
_FIND = """
    SELECT kind, label, name, coalesce(obj_description(id, catalog), '')
      FROM (SELECT 'pg_class' AS catalog, oid AS id, relname AS label, oid::regclass::text AS name,
                   CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW' WHEN 'S' THEN 'SEQUENCE'
                                WHEN 'f' THEN 'FOREIGN TABLE' ELSE 'TABLE' END AS kind
              FROM pg_class
             WHERE relnamespace = %(schema)s::regnamespace AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
            UNION ALL
            SELECT 'pg_proc', oid, proname, oid::regprocedure::text,
                   CASE WHEN prorettype = 'trigger'::regtype THEN 'FUNCTION' ELSE 'ROUTINE' END
              FROM pg_proc WHERE pronamespace = %(schema)s::regnamespace
            UNION ALL
            SELECT 'pg_type', t.oid, t.typname, t.oid::regtype::text, 'TYPE'
              FROM pg_type t LEFT JOIN pg_class c ON c.oid = t.typrelid
             WHERE typnamespace = %(schema)s::regnamespace
               AND (t.typtype IN ('e', 'd', 'r') OR (t.typtype = 'c' AND c.relkind = 'c'))) found
     WHERE NOT EXISTS (SELECT 1 FROM pg_depend d WHERE (d.classid, d.objid, d.objsubid) = (catalog::regclass, id, 0)
                          AND d.deptype IN ('a', 'i', 'e'))
     ORDER BY label, name
"""
# A view may use routines; a routine may use a table's row type; a trigger's function is used by a table.
_DROP_ORDER = ("MATERIALIZED VIEW", "VIEW", "ROUTINE", "FOREIGN TABLE", "TABLE", "FUNCTION", "SEQUENCE", "TYPE")


@dataclass(frozen=True)
class SchemaObject:
    """An object of a schema."""

    kind: str
    """The keyword for DROP and COMMENT ON: FUNCTION for a trigger's function, ROUTINE for any other routine."""
    label: str
    """The name in the catalog."""
    name: str
    """The name as SQL, quoted if necessary; of a routine with its arguments."""
    comment: str
    """"" without a comment."""


def find(cur: cursor, schema: str) -> tuple[SchemaObject, ...]:
    """Return the objects of the schema, ordered by name. The schema must be the search_path."""
    cur.execute(_FIND, {"schema": schema})
    return tuple(SchemaObject(*row) for row in cur.fetchall())


def mark(cur: cursor, objects: Iterable[SchemaObject], comment: str) -> None:
    """Set the comment of each object."""
    for each in objects:
        statement = sql.SQL(f"COMMENT ON {each.kind} {each.name} IS {{}}")  # the catalog has quoted the name
        cur.execute(statement.format(sql.Literal(comment)))


def drop_statements(objects: Iterable[SchemaObject]) -> tuple[str, ...]:
    """Return the statements that drop the objects, one for each kind. They fail if other objects depend on these."""
    names: dict[str, list[str]] = {}
    for each in objects:
        names.setdefault(each.kind, []).append(each.name)
    return tuple(f"DROP {kind} {', '.join(names[kind])}" for kind in _DROP_ORDER if kind in names)
