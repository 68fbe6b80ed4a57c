"""Build Spark expressions that parse the JSON text of each PostgreSQL type, as Debezium writes it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import uuid
from dataclasses import dataclass

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.contract.schema.value_rules import PLACEHOLDER, ValueRules
from cdc_lake.jobs.apply import special_values
from cdc_lake.jobs.apply.special_values import in_milliseconds

# Special values of numeric: the names that Debezium writes, and PostgreSQL's.
SPECIAL_NUMBERS = {"NAN": "NaN", "POSITIVE_INFINITY": "Infinity", "NEGATIVE_INFINITY": "-Infinity"}
# Arrays whose elements are JSON numbers or booleans, not strings.
_BARE_ARRAYS = frozenset({"smallint[]", "integer[]", "bigint[]", "oid[]", "real[]", "double precision[]", "boolean[]"})
# Debezium writes an array within an array as the name of a Java object, or as NULL.
_NESTED = r"\[L[a-z.]+[A-Za-z]*;@"
_BYTES = PLACEHOLDER.encode()
_UNAVAILABLE = {
    "text": (PLACEHOLDER,),
    "bytea": (base64.b64encode(_BYTES).decode(),),
    "array": (
        json.dumps([PLACEHOLDER]),
        json.dumps(list(_BYTES), separators=(",", ":")),
        json.dumps([str(uuid.UUID(bytes=hashlib.md5(_BYTES, usedforsecurity=False).digest(), version=3))]),
    ),
}


@dataclass(frozen=True)
class ParsedValue:
    """Expressions for a parsed value.

    `value` is NULL if the text is not valid. `rejection` is the reason for rejecting the value, or NULL; the caller
    rejects other invalid texts. `null` is true if a rule makes the value NULL, or if PostgreSQL left it out.
    `unavailable` is true if PostgreSQL left it out.
    """

    value: SparkColumn
    rejection: SparkColumn
    null: SparkColumn
    unavailable: SparkColumn


def parse_value(column: Column, field_text: SparkColumn, rules: ValueRules) -> ParsedValue:
    """Parse a column's value from its field's text."""
    parsed = special_values.apply(column, field_text, _value(column, field_text), rules)
    rejection = _multidimensional_error(column, field_text) if column.type.endswith("[]") else parsed.rejection
    unavailable = (
        F.coalesce(field_text.isin(*placeholders(column)), F.lit(False)) if toastable(column) else F.lit(False)
    )
    return ParsedValue(F.when(~unavailable, parsed.value), rejection, parsed.null | unavailable, unavailable)


def _multidimensional_error(column: Column, field_text: SparkColumn) -> SparkColumn:
    """Return the reason for rejecting an array that may have more than one dimension."""
    elements = F.from_json(field_text, "array<string>")
    all_null = (F.size(elements) > 0) & (F.size(F.array_compact(elements)) == 0)
    return F.when(
        field_text.rlike(_NESTED) | all_null,
        F.lit(
            f"Cannot read column {column.name}: the array has more than one dimension, or only NULLs. Debezium writes "
            "both alike, without the elements"
        ),
    )


def _value(column: Column, field_text: SparkColumn) -> SparkColumn:
    if column.type.endswith("[]"):
        # Without from_json(), characters outside the Basic Multilingual Plane would stay \u escapes.
        array = field_text if column.base in _BARE_ARRAYS else F.to_json(F.from_json(field_text, "array<string>"))
        return F.when(field_text.startswith("["), array)
    match column.base:
        case "date":
            value = F.date_add(F.lit("1970-01-01").cast("date"), exact_cast(field_text, "int"))
        case "timestamp without time zone":
            value = F.timestamp_micros(_micros(column, field_text))
        case "timestamp with time zone":
            value = F.when(field_text.rlike(r"\dT\d\d:"), field_text.cast("timestamp"))
        case "time without time zone":
            value = _micros(column, field_text)
        case "bytea":
            value = F.try_to_binary(field_text, F.lit("base64"))
        case "bit" if column.lake_type == "string":
            value = _bits(field_text, column.arguments[0])
        case "numeric" if column.lake_type == "string":
            value = _number(field_text)
        case _:
            value = exact_cast(field_text, column.lake_type)
    return value


def _number(field_text: SparkColumn) -> SparkColumn:
    """Return a numeric's text as PostgreSQL writes it: Java writes 0.00000015 as 1.5E-7, ten decimal zeros as 0E-10."""
    special = F.create_map(*(F.lit(text) for pair in SPECIAL_NUMBERS.items() for text in pair))
    small = r"^(-?)(\d)\.?(\d*)E-(\d+)$"  # one digit before the point, by Java's BigDecimal.toString()
    sign, whole, rest, places = (F.regexp_extract(field_text, small, group) for group in (1, 2, 3, 4))
    zeros = F.array_join(F.array_repeat(F.lit("0"), places.cast("int") - 1), "")
    plain = F.when(
        field_text.rlike(r"^-?\d+(\.\d*)?([eE][+]?\d+)?$") | field_text.isin(*SPECIAL_NUMBERS.values(), PLACEHOLDER),
        field_text,
    )
    return F.coalesce(
        special[field_text], F.when(field_text.rlike(small), F.concat(sign, F.lit("0."), zeros, whole, rest)), plain
    )


def exact_cast(field_text: SparkColumn, lake_type: str) -> SparkColumn:
    """Cast a text exactly, or to NULL if that would lose a digit: Spark's cast turns `1.9` into the integer 1."""
    if lake_type in {"int", "bigint"}:
        return F.when(field_text.rlike(r"^-?\d+$"), field_text.cast(lake_type))
    if lake_type == "boolean":
        return F.when(field_text.isin("true", "false"), field_text.cast(lake_type))
    if lake_type in {"float", "double"}:
        # Java's parser also accepts `1d` and `0x1p3`.
        number = r"^-?\d+(\.\d*)?([eE][+-]?\d+)?$"
        return F.when(
            field_text.rlike(number) | field_text.isin("NaN", "Infinity", "-Infinity"), field_text.cast(lake_type)
        )
    if found := re.fullmatch(r"decimal\(\d+,(\d+)\)", lake_type):
        # Java writes ten decimal zeros as 0E-10.
        fraction = F.regexp_replace(F.regexp_extract(field_text, r"\.(\d+)", 1), "0+$", "")
        exponent = F.coalesce(F.regexp_extract(field_text, r"[eE]([+-]?\d+)$", 1).cast("int"), F.lit(0))
        plain = field_text.rlike(r"^-?\d+(\.\d*)?([eE][+-]?\d+)?$")
        return F.when(plain & (F.length(fraction) - exponent <= int(found[1])), field_text.cast(lake_type))
    return field_text.cast(lake_type)


def _micros(column: Column, field_text: SparkColumn) -> SparkColumn:
    return F.try_multiply(exact_cast(field_text, "bigint"), F.lit(1000 if in_milliseconds(column) else 1))


def _bits(field_text: SparkColumn, length: int) -> SparkColumn:
    """Return the digits of a bit string; Debezium writes its bytes, the lowest first."""
    # Debezium omits trailing zero bytes, so that a string of zeros has no byte: append one.
    text = F.concat(F.hex(F.try_to_binary(field_text, F.lit("base64"))), F.lit("00"))
    places = F.sequence(F.lit(-2), -F.length(text), F.lit(-2))
    digits = F.transform(places, lambda place: F.lpad(F.conv(text.substr(place, F.lit(2)), 16, 2), 8, "0"))
    bits = F.regexp_replace(F.array_join(digits, ""), "^0+", "")
    return F.when(F.length(bits) <= length, F.lpad(bits, length, "0"))


def toastable(column: Column) -> bool:
    """Return whether PostgreSQL can store a value out of line (TOAST)."""
    return column.lake_type in {"string", "binary"} or column.lake_type.startswith("decimal")


def placeholders(column: Column) -> tuple[str, ...]:
    """Return the texts that Debezium writes in place of a value that PostgreSQL left out."""
    if column.type.endswith("[]"):
        return _UNAVAILABLE["array"]
    return _UNAVAILABLE["bytea"] if column.base in {"bytea", "bit"} else _UNAVAILABLE["text"]
