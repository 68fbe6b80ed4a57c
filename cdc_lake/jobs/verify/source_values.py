"""Convert each value of the source to the lake's type, independently of Debezium's records.

verify must not share a bug with the code that it checks, so this module does not use jobs/apply/decode.py or
debezium_types.py: SQL expressions convert values in PostgreSQL (to days since 1970, microseconds, hexadecimal digits),
and Spark casts the results. Where Debezium and PostgreSQL write the same value differently, normalized() converts both:
numbers without an exponent, times of day in UTC, JSON without optional whitespace.
"""

from __future__ import annotations

from dataclasses import dataclass

from psycopg2 import sql
from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.contract.schema.column_types import base
from cdc_lake.contract.schema.transforms import Algorithm
from cdc_lake.contract.schema.value_rules import ValueRules

_FINITE = "case when isfinite({{0}}) then ({})::text else ({{0}})::text end"
_MICROSECONDS = "(extract(epoch from {0}) * 1000000)::bigint"
# The format of Debezium's Interval.toIsoString(): seconds have no trailing zeros.
_INTERVAL = (
    "'P' || extract(year from {0}) || 'Y' || extract(month from {0}) || 'M' || extract(day from {0}) || 'DT' ||"
    " extract(hour from {0}) || 'H' || extract(minute from {0}) || 'M' ||"
    " trim_scale(extract(second from {0})::numeric) || 'S'"
)
_TEMPLATES = {
    "date": _FINITE.format("{0} - date '1970-01-01'"),
    "timestamp without time zone": _FINITE.format(_MICROSECONDS),
    "timestamp with time zone": _FINITE.format(_MICROSECONDS),
    "time without time zone": f"({_MICROSECONDS})::text",
    "interval": _INTERVAL,
    "money": "{0}::numeric::text",
    "bytea": "encode({0}, 'hex')",
    "hstore": "hstore_to_json({0})::text",
}
_LAST_AND_FIRST = {
    "date": ("9999-12-31", "0001-01-01"),
    "timestamp": ("9999-12-31 23:59:59.999999", "0001-01-01 00:00:00"),
}
_MAX_SCALE = 16_383  # the maximum number of decimal places of a numeric
_ZONED = r"^(\d\d):(\d\d):(\d\d)(?:\.(\d{1,6})0*)?(?:Z|([+-])(\d\d)(?::?(\d\d))?(?::?(\d\d))?)$"
_DAY = 86_400_000_000


@dataclass(frozen=True)
class SelectedColumn:
    """A column to select: `template` is a SQL template for its name, `alias` its name in the result.

    `constant` is a text that replaces all values. With `algorithm`, postgres_copy.py hashes the selected values after
    reading them: the salt must not be part of a statement, which the server may log. `length` is the hash's maximum
    length.
    """

    alias: str
    template: str
    name: str
    constant: str | None = None
    algorithm: Algorithm | None = None
    length: int | None = None

    def sql(self) -> sql.Composed:
        """Return the SQL expression."""
        if self.constant is not None:
            return sql.Composed([sql.Literal(self.constant)])
        return sql.SQL(self.template).format(sql.Identifier(self.name))


def selected_column(alias: str, column: Column) -> SelectedColumn:
    """Return how to select a column's values from PostgreSQL.

    Values of types without a template are selected in the format of their output function, which pgoutput also sends: a
    cast to text would remove trailing blanks of a character(n). Array elements are selected as texts, because JSON
    numbers would lose trailing zeros.
    """
    name, masked = column.source_name, column.masked
    constant = column.inserted if masked is None else masked.constant
    if constant is not None:
        return SelectedColumn(alias, "{0}", name, constant)
    if column.type.endswith("[]"):
        return SelectedColumn(alias, "array_to_json({0}::text[])::text", name)
    template = _TEMPLATES.get(column.base, "{0}")
    if column.uncast is not None:
        template = template.replace("{0}", f"({{0}}::{column.type})")
    if masked is None:
        return SelectedColumn(alias, template, name)
    return SelectedColumn(alias, template, name, None, masked.algorithm, next(iter(column.arguments), None))


def to_lake_type(column: Column, text: SparkColumn, rules: ValueRules) -> SparkColumn:
    """Convert the text from selected_column() to the lake's type.

    Returns NULL for a value that the rules make NULL or send to the dead letters (is_rejected()).
    """
    if column.type.endswith("[]"):
        return text
    match column.base:
        case "date":
            return _bounded(column, text, F.date_add(F.lit("1970-01-01").cast("date"), text.cast("int")), rules)
        case "timestamp without time zone" | "timestamp with time zone":
            return _bounded(column, text, F.timestamp_micros(text.cast("bigint")), rules)
        case "bytea":
            return F.unhex(text)
        case "bit" if column.lake_type == "boolean":
            return text == "1"
        case _:
            return text.cast(column.lake_type)


def is_rejected(column: Column, text: SparkColumn, rules: ValueRules) -> SparkColumn | None:
    """Return whether the rules send a value to the dead letters; None for a type without such values.

    verify must not treat such a value as equal to a NULL in the lake.
    """
    if column.type.endswith("[]"):
        return None
    if column.lake_type in _LAST_AND_FIRST and rules.infinity == "dead_letter":
        return text.isin("infinity", "-infinity")
    if column.lake_type.startswith("decimal") and rules.nan == "dead_letter":
        return text == "NaN"
    return None


def _bounded(column: Column, text: SparkColumn, value: SparkColumn, rules: ValueRules) -> SparkColumn:
    if rules.infinity != "max":
        return value
    last, first = (F.lit(end).cast(column.lake_type) for end in _LAST_AND_FIRST[column.lake_type])
    return F.when(text == "infinity", last).when(text == "-infinity", first).otherwise(value)


def normalized(column: Column, value: SparkColumn) -> SparkColumn:
    """Convert a value of either side to the form in which both are compared."""
    if column.type.endswith("[]"):
        elements = F.from_json(value, "array<string>")
        return F.to_json(F.transform(elements, lambda one: _element(base(column.type[:-2]), one)))
    match column.base:
        case "numeric" if column.lake_type == "string":
            return _without_exponent(value)
        case "time with time zone":
            return _utc_microseconds(value)
        case "hstore":
            return F.to_json(F.array_sort(F.map_entries(F.from_json(value, "map<string,string>"))))
        case _:
            return value


def _element(kind: str, text: SparkColumn) -> SparkColumn:
    """Convert an array element's text to a text that is equal for equal values."""
    match kind:
        case "real" | "double precision":
            return text.cast("float" if kind == "real" else "double").cast("string")
        case "numeric":
            return _without_exponent(text)
        case "timestamp with time zone":
            return F.coalesce(F.unix_micros(text.cast("timestamp")).cast("string"), text)
        case "time with time zone":
            return _utc_microseconds(text)
        case _:
            return text


def _without_exponent(text: SparkColumn) -> SparkColumn:
    """Remove the exponent from a number's text: Java writes 1.5E-7 where PostgreSQL writes 0.00000015."""
    digits = F.regexp_replace(F.regexp_extract(text, r"^-?([0-9.]+)E-\d+$", 1), r"\.", "")
    places = F.regexp_extract(text, r"E-(\d+)$", 1).cast("int")
    zeros = F.lit("0" * _MAX_SCALE).substr(F.lit(1), places - 1)
    sign = F.when(text.startswith("-"), "-").otherwise("")
    return F.when(digits != "", F.concat(sign, F.lit("0."), zeros, digits)).otherwise(text)


def _utc_microseconds(text: SparkColumn) -> SparkColumn:
    """Convert a `time with time zone` to the microseconds since midnight in UTC, the zone that Debezium writes.

    Other texts are not changed.
    """

    def part(group: int) -> SparkColumn:
        return F.coalesce(F.regexp_extract(text, _ZONED, group).cast("bigint"), F.lit(0))

    def seconds(hours: int, minutes: int, of_minute: int) -> SparkColumn:
        return (part(hours) * 60 + part(minutes)) * 60 + part(of_minute)

    micros = seconds(1, 2, 3) * 1_000_000 + F.rpad(F.regexp_extract(text, _ZONED, 4), 6, "0").cast("bigint")
    sign = F.when(F.regexp_extract(text, _ZONED, 5) == "-", -1).otherwise(1)
    utc = F.pmod(micros - sign * seconds(6, 7, 8) * 1_000_000, F.lit(_DAY)).cast("string")
    return F.when(text.rlike(_ZONED), utc).otherwise(text)
