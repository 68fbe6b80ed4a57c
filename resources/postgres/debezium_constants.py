"""Converts a constant of a PostgreSQL type to the text that Debezium writes in a record."""

from __future__ import annotations

import re

from psycopg2 import sql
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

_MICROS = "(extract(epoch from v) * {unit})::bigint::text"
_EXPRESSIONS = {
    "date": "(v - date '1970-01-01')::text",
    "timestamp without time zone": _MICROS,
    "time without time zone": _MICROS,
    "timestamp with time zone": "to_char(v at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
    "bytea": "translate(encode(v, 'base64'), E'\\n', '')",
    "boolean": "v::text",
    "money": "v::numeric::text",
}
_ARRAY = "to_json(v)::text"
_SAME = "format('%s', v)"
# Types for which Debezium has its own formats.
_UNSUPPORTED = frozenset({"time with time zone", "interval", "bit", "hstore"})
_PLAIN_ELEMENTS = frozenset({"smallint", "integer", "bigint", "boolean", "text", "character varying", "uuid"})
_ARGUMENTS = re.compile(r"\((\d+)[^)]*\)")


def debezium_text(connection: Connection, type_name: str, text: str) -> str | None:
    """Return the value's text in a record; None for types and values that this module does not convert.

    Args:
        connection: to any database that has the type.
        type_name: with its modifier, domains resolved, such as `timestamp(3) without time zone` or `integer[]`.
        text: the value in PostgreSQL's text format.
    """
    bare = re.sub(r"\([^)]*\)", "", type_name)
    if bare in _UNSUPPORTED or text in {"infinity", "-infinity"}:
        return None
    if bare.endswith("[]"):
        if bare[:-2] not in _PLAIN_ELEMENTS:
            return None
        expression = _ARRAY
    else:
        expression = _EXPRESSIONS.get(bare, _SAME)
    found = _ARGUMENTS.search(type_name)
    unit = 1000 if found and int(found[1]) <= 3 else 1_000_000
    with connection.cursor() as cursor:
        cursor.execute("set timezone to 'UTC'")
        # The type's name is safe as SQL: it is the result of PostgreSQL's format_type(), which quotes it.
        statement = sql.SQL("select {} from (select {}::{} as v) c").format(
            sql.SQL(expression.replace("{unit}", str(unit))), sql.Literal(text), sql.SQL(type_name)
        )
        cursor.execute(statement)
        row = cursor.fetchone()
    return None if row is None else str(row[0])
