"""The mapping from PostgreSQL types to lake types."""

from __future__ import annotations

import re
from typing import Literal

TypeKind = Literal["base", "array", "composite", "domain", "enum", "pseudo", "range", "multirange"]

# Types that Debezium writes as text, exactly as PostgreSQL does; docs/reference/types.md lists the exceptions.
TEXT_TYPES = frozenset(
    {
        "text",
        "character varying",
        "character",
        "bpchar",
        "name",
        '"char"',
        "citext",
        "uuid",
        "json",
        "jsonb",
        "xml",
        "hstore",
        "ltree",
        "tsvector",
        "inet",
        "cidr",
        "macaddr",
        "macaddr8",
        "int4range",
        "int8range",
        "numrange",
        "tsrange",
        "tstzrange",
        "daterange",
        "time with time zone",
        "interval",
    }
)

_LAKE_TYPES = {
    "smallint": "int",
    "integer": "int",
    "bigint": "bigint",
    "oid": "bigint",
    "real": "float",
    "double precision": "double",
    "boolean": "boolean",
    "money": "decimal(19,2)",
    "date": "date",
    "timestamp without time zone": "timestamp",
    "timestamp with time zone": "timestamp",
    "time without time zone": "bigint",
    "bytea": "binary",
}

# Array elements that a record's JSON preserves. The lake stores an array as JSON text: Hudi writes Parquet files in a
# format whose lists cannot contain NULL. A NaN in an array of numeric, or an array of time with time zone, stops
# Debezium; dates and times in arrays are bare numbers.
_ARRAY_ELEMENT_TYPES = frozenset(
    {
        "smallint",
        "integer",
        "bigint",
        "oid",
        "real",
        "double precision",
        "boolean",
        "timestamp with time zone",
        "text",
        "character varying",
        "character",
        "bpchar",
        "citext",
        "uuid",
        "json",
        "jsonb",
        "ltree",
        "inet",
        "cidr",
        "macaddr",
        "macaddr8",
        "int4range",
        "int8range",
        "numrange",
        "tsrange",
        "tstzrange",
        "daterange",
    }
)
# format_type() qualifies a type of an extension whose schema is not on the search path.
_EXTENSION_TYPES = frozenset({"citext", "hstore", "ltree"})
_TYPE = re.compile(r'^(?P<base>[a-z0-9_." ]+?)(?:\((?P<args>[-\d,]+)\))?(?P<rest>(?: [a-z ]+)?)(?P<array>(?:\[\])*)$')


def base(declared: str) -> str:
    """Return a type without its arguments: `timestamp(3) without time zone` → `timestamp without time zone`."""
    found = _TYPE.match(declared)
    if found is None:
        return declared
    bare = found["base"].rpartition(".")[2]
    return (bare if bare in _EXTENSION_TYPES else found["base"]) + found["rest"] + found["array"]


def arguments(declared: str) -> tuple[int, ...]:
    """Return a type's arguments: `numeric(6,2)` → (6, 2)."""
    found = _TYPE.match(declared)
    return () if found is None or not found["args"] else tuple(map(int, found["args"].split(",")))


def lake_type(declared: str, kind: TypeKind) -> str | None:
    """Return the type in the lake, in Hive's syntax; None for a type that the lake cannot hold.

    `declared` is the type with domains resolved, as PostgreSQL's format_type() writes it; for an array, `kind` is the
    kind of its elements.
    """
    if kind in {"domain", "composite", "pseudo", "multirange"}:
        return None
    if declared.endswith("[]"):
        bare = base(declared[:-2])
        return "string" if kind == "enum" or bare in _ARRAY_ELEMENT_TYPES else None
    if kind == "enum":
        return "string"
    bare = base(declared)
    match bare:
        case "numeric":
            return _numeric(arguments(declared))
        case "bit":
            return "boolean" if arguments(declared) in {(), (1,)} else "string"
        case _:
            return "string" if bare in TEXT_TYPES else _LAKE_TYPES.get(bare)


def _numeric(given: tuple[int, ...]) -> str | None:
    if not given:
        return "string"  # unbounded: no decimal type holds every value
    precision, scale = (*given, 0)[:2]
    if scale < 0:
        return None  # Debezium reads the scale -3 as 2045
    return f"decimal({precision},{scale})" if precision <= 38 and scale <= precision else "string"
