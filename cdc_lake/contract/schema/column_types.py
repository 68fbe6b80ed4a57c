"""What each PostgreSQL type becomes in the lake, and which types it can't hold."""

from __future__ import annotations

import re
from typing import Literal

TypeKind = Literal["base", "array", "composite", "domain", "enum", "pseudo", "range", "multirange"]

# What Debezium tells as text, to the last character as PostgreSQL writes it unless docs/reference/types.md says more.
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

# Elements that a record's JSON tells as they are. The lake keeps an array as JSON text: Parquet files that Hudi writes
# for old readers can't hold a list with a NULL in it. A NaN in an array of numeric stops Debezium, as an array of time
# with time zone does; dates and times come as bare numbers.
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
# Types of extensions carry their schema's name where that is not on the search path.
_EXTENSION_TYPES = frozenset({"citext", "hstore", "ltree"})
_TYPE = re.compile(r'^(?P<base>[a-z0-9_." ]+?)(?:\((?P<args>[-\d,]+)\))?(?P<rest>(?: [a-z ]+)?)(?P<array>(?:\[\])*)$')


def base(declared: str) -> str:
    """A type without its arguments: `timestamp(3) without time zone` → `timestamp without time zone`."""
    found = _TYPE.match(declared)
    if found is None:
        return declared
    bare = found["base"].rpartition(".")[2]
    return (bare if bare in _EXTENSION_TYPES else found["base"]) + found["rest"] + found["array"]


def arguments(declared: str) -> tuple[int, ...]:
    """A type's arguments: `numeric(6,2)` → (6, 2)."""
    found = _TYPE.match(declared)
    return () if found is None or not found["args"] else tuple(map(int, found["args"].split(",")))


def lake_type(declared: str, kind: TypeKind) -> str | None:
    """The type in the lake, as Hive spells it; None for a type that the lake can't hold.

    `declared` is the type with domains followed, as PostgreSQL's format_type() spells it; `kind` is the kind of what is
    below arrays.
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
        return "string"  # unbounded: no decimal type holds every value of it
    precision, scale = (*given, 0)[:2]
    if scale < 0:
        return None  # Debezium takes -3 for 2045
    return f"decimal({precision},{scale})" if precision <= 38 and scale <= precision else "string"
