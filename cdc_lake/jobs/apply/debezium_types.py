"""Spark expressions that parse the JSON text in which Debezium writes a value of each PostgreSQL type."""

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
from cdc_lake.contract.schema.special_values import PLACEHOLDER, ValueRules

# Measured. A snapshot writes an infinite date as another number than the stream does; both are outside of PostgreSQL's
# calendar. A timestamp(3) has the milliseconds that PostgreSQL's JDBC driver uses for infinity.
_INFINITIES = {
    "date": (("2146033979", "-622191234"), ("-2147472691", "-625821272")),
    "timestamp without time zone": (("9223372036854775807",), ("-9223372036854775808",)),
    "timestamp(ms) without time zone": (("9223372036825200000",), ("-9223372036832400000",)),
    "timestamp with time zone": (("infinity",), ("-infinity",)),
}
# Special values of numeric: the names that Debezium writes, and PostgreSQL's.
_SPECIAL = {"NAN": "NaN", "POSITIVE_INFINITY": "Infinity", "NEGATIVE_INFINITY": "-Infinity"}
# Arrays whose elements are JSON numbers or booleans, not strings.
_BARE_ARRAYS = frozenset({"smallint[]", "integer[]", "bigint[]", "oid[]", "real[]", "double precision[]", "boolean[]"})
# Debezium writes an array within an array as the name of a Java object, or as NULL.
_NESTED = r"\[L[a-z.]+[A-Za-z]*;@"
_LAST = {"date": "9999-12-31", "timestamp": "9999-12-31 23:59:59.999999"}
_FIRST = {"date": "0001-01-01", "timestamp": "0001-01-01 00:00:00"}
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
    """A parsed value: `value` is NULL where there is none; `refused` is the reason for rejecting it, where the text
    alone does not show it; `null` is true where a rule makes it NULL; `unavailable` where PostgreSQL left it out.
    """

    value: SparkColumn
    refused: SparkColumn
    null: SparkColumn
    unavailable: SparkColumn


def parse_value(column: Column, wire: SparkColumn, rules: ValueRules) -> ParsedValue:
    """Parse a column's value from its field's text."""
    value = _value(column, wire)
    refused, null = F.lit(None).cast("string"), F.lit(False)
    endless = _INFINITIES.get(_temporal_kind(column))
    if endless is not None:
        up, down = (wire.isin(*texts) for texts in endless)
        value, refused, null = _bounded(column, value, up, down, rules)
    elif column.type.endswith("[]"):
        refused = _multidimensional_error(column, wire)
    elif column.lake_type.startswith("decimal"):
        is_nan = F.lower(wire) == "nan"
        value = F.when(~is_nan, value)
        null = F.coalesce(is_nan, F.lit(False)) if rules.nan == "null" else null
        refused = F.when(
            is_nan & F.lit(rules.nan == "dead_letter"),
            F.lit(
                f"Cannot read column {column.name}: NaN is not a valid {column.lake_type}. Set `values: {{nan: null}}` "
                "in the table's YAML"
            ),
        )
    unavailable = F.coalesce(wire.isin(*_placeholders(column)), F.lit(False)) if _toastable(column) else F.lit(False)
    return ParsedValue(F.when(~unavailable, value), refused, null | unavailable, unavailable)


def _bounded(
    column: Column, value: SparkColumn, up: SparkColumn, down: SparkColumn, rules: ValueRules
) -> tuple[SparkColumn, SparkColumn, SparkColumn]:
    """Return value, refused and null (see ParsedValue) of a value that can be infinite."""
    kind = column.lake_type
    endless = F.coalesce(up | down, F.lit(False))
    if rules.infinity == "max":
        value = F.when(up, F.lit(_LAST[kind]).cast(kind)).when(down, F.lit(_FIRST[kind]).cast(kind)).otherwise(value)
        return value, F.lit(None).cast("string"), F.lit(False)
    reason = F.concat(
        F.lit(f"Cannot read column {column.name}: "),
        F.when(down, F.lit("-infinity")).otherwise(F.lit("infinity")),
        F.lit(f" is not a valid {kind}. Set `values: {{infinity: max}}` or null in the table's YAML"),
    )
    value = F.when(~endless, value)
    if rules.infinity == "null":
        return value, F.lit(None).cast("string"), endless
    return value, F.when(endless, reason), F.lit(False)


def _multidimensional_error(column: Column, wire: SparkColumn) -> SparkColumn:
    """The reason for an array that may have more than one dimension."""
    elements = F.from_json(wire, "array<string>")
    all_null = (F.size(elements) > 0) & (F.size(F.array_compact(elements)) == 0)
    return F.when(
        wire.rlike(_NESTED) | all_null,
        F.lit(
            f"Cannot read column {column.name}: the array has more than one dimension, or only NULLs. Debezium writes "
            "both alike, without the elements"
        ),
    )


def _value(column: Column, wire: SparkColumn) -> SparkColumn:
    if column.type.endswith("[]"):
        # Without from_json(), characters beyond the first plane stay as escapes.
        array = wire if column.base in _BARE_ARRAYS else F.to_json(F.from_json(wire, "array<string>"))
        return F.when(wire.startswith("["), array)
    match column.base:
        case "date":
            value = F.date_add(F.lit("1970-01-01").cast("date"), exact_cast(wire, "int"))
        case "timestamp without time zone":
            value = F.timestamp_micros(_micros(column, wire))
        case "timestamp with time zone":
            value = F.when(wire.rlike(r"\dT\d\d:"), wire.cast("timestamp"))
        case "time without time zone":
            value = _micros(column, wire)
        case "bytea":
            value = F.try_to_binary(wire, F.lit("base64"))
        case "bit" if column.lake_type == "string":
            value = _bits(wire, column.arguments[0])
        case "numeric" if column.lake_type == "string":
            value = _number(wire)
        case _:
            value = exact_cast(wire, column.lake_type)
    return value


def _number(wire: SparkColumn) -> SparkColumn:
    """A numeric's text as PostgreSQL writes it: Java writes 0.00000015 as 1.5E-7, and ten decimal zeros as 0E-10."""
    special = F.create_map(*(F.lit(text) for pair in _SPECIAL.items() for text in pair))
    small = r"^(-?)(\d)\.?(\d*)E-(\d+)$"  # one digit before the point, by Java's BigDecimal.toString()
    sign, whole, rest, places = (F.regexp_extract(wire, small, group) for group in (1, 2, 3, 4))
    zeros = F.array_join(F.array_repeat(F.lit("0"), places.cast("int") - 1), "")
    plain = F.when(wire.rlike(r"^-?\d+(\.\d*)?([eE][+]?\d+)?$") | wire.isin(*_SPECIAL.values(), PLACEHOLDER), wire)
    return F.coalesce(special[wire], F.when(wire.rlike(small), F.concat(sign, F.lit("0."), zeros, whole, rest)), plain)


def exact_cast(wire: SparkColumn, lake_type: str) -> SparkColumn:
    """Cast a text exactly, NULL where that would lose a digit: Spark's cast turns `1.9` into the integer 1."""
    if lake_type in {"int", "bigint"}:
        return F.when(wire.rlike(r"^-?\d+$"), wire.cast(lake_type))
    if lake_type == "boolean":
        return F.when(wire.isin("true", "false"), wire.cast(lake_type))
    if lake_type in {"float", "double"}:
        # Java's parser also accepts `1d` and `0x1p3`.
        number = r"^-?\d+(\.\d*)?([eE][+-]?\d+)?$"
        return F.when(wire.rlike(number) | wire.isin("NaN", "Infinity", "-Infinity"), wire.cast(lake_type))
    if found := re.fullmatch(r"decimal\(\d+,(\d+)\)", lake_type):
        # Java writes ten decimal zeros as 0E-10.
        fraction = F.regexp_replace(F.regexp_extract(wire, r"\.(\d+)", 1), "0+$", "")
        exponent = F.coalesce(F.regexp_extract(wire, r"[eE]([+-]?\d+)$", 1).cast("int"), F.lit(0))
        plain = wire.rlike(r"^-?\d+(\.\d*)?([eE][+-]?\d+)?$")
        return F.when(plain & (F.length(fraction) - exponent <= int(found[1])), wire.cast(lake_type))
    return wire.cast(lake_type)


def _micros(column: Column, wire: SparkColumn) -> SparkColumn:
    return F.try_multiply(exact_cast(wire, "bigint"), F.lit(1000 if _in_millis(column) else 1))


def _bits(wire: SparkColumn, length: int) -> SparkColumn:
    """The digits of a bit string; Debezium writes its bytes, the lowest first."""
    # Debezium omits trailing zero bytes, so that a string of zeros has no byte: append one.
    text = F.concat(F.hex(F.try_to_binary(wire, F.lit("base64"))), F.lit("00"))
    places = F.sequence(F.lit(-2), -F.length(text), F.lit(-2))
    digits = F.transform(places, lambda place: F.lpad(F.conv(text.substr(place, F.lit(2)), 16, 2), 8, "0"))
    bits = F.regexp_replace(F.array_join(digits, ""), "^0+", "")
    return F.when(F.length(bits) <= length, F.lpad(bits, length, "0"))


def _in_millis(column: Column) -> bool:
    return bool(column.arguments) and column.arguments[0] <= 3


def _temporal_kind(column: Column) -> str:
    if column.base == "timestamp without time zone" and _in_millis(column):
        return "timestamp(ms) without time zone"
    return column.base


def _toastable(column: Column) -> bool:
    """Whether PostgreSQL can store a value out of line (TOAST)."""
    return column.lake_type in {"string", "binary"} or column.lake_type.startswith("decimal")


def _placeholders(column: Column) -> tuple[str, ...]:
    if column.type.endswith("[]"):
        return _UNAVAILABLE["array"]
    return _UNAVAILABLE["bytea"] if column.base in {"bytea", "bit"} else _UNAVAILABLE["text"]
