"""Apply a table's rules to NaN and infinity in columns that cannot store them: NULL, a date, or a dead letter.

Columns of type float, double and string (a numeric without precision) keep NaN: debezium_types.py reads it, and
json_rows_sql.py in the views of JSON objects. jobs/verify/source_values.py applies the same rules to the source's rows.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyspark.sql import Column as SparkColumn
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.contract.schema.value_rules import ValueRules

# Measured values. For an infinite date, Debezium writes one number in a snapshot and another in the stream; both are
# outside of PostgreSQL's calendar. For an infinite timestamp(3), it writes the number of milliseconds that PostgreSQL's
# JDBC driver uses for infinity.
_INFINITIES = {
    "date": (("2146033979", "-622191234"), ("-2147472691", "-625821272")),
    "timestamp without time zone": (("9223372036854775807",), ("-9223372036854775808",)),
    "timestamp(ms) without time zone": (("9223372036825200000",), ("-9223372036832400000",)),
    "timestamp with time zone": (("infinity",), ("-infinity",)),
}
_LAST = {"date": "9999-12-31", "timestamp": "9999-12-31 23:59:59.999999"}
_FIRST = {"date": "0001-01-01", "timestamp": "0001-01-01 00:00:00"}


@dataclass(frozen=True)
class SpecialValue:
    """A value after the rules.

    `value` is NULL if the rules do not keep it. `rejection` is the reason for a dead letter, or NULL. `null` is true if
    a rule makes the value NULL.
    """

    value: SparkColumn
    rejection: SparkColumn = field(default_factory=lambda: F.lit(None).cast("string"))
    null: SparkColumn = field(default_factory=lambda: F.lit(False))


def apply(column: Column, field_text: SparkColumn, value: SparkColumn, rules: ValueRules) -> SpecialValue:
    """Apply the rules to a column's parsed `value`; `field_text` is the text that it was parsed from."""
    texts_of_infinity = infinities(column)
    if texts_of_infinity is not None:
        up, down = (field_text.isin(*texts) for texts in texts_of_infinity)
        return _infinite(column, value, up, down, rules)
    if column.lake_type.startswith("decimal"):
        return _not_a_number(column, value, F.lower(field_text) == "nan", rules)
    return SpecialValue(value)


def infinities(column: Column) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """Return the texts of infinity and of -infinity; None for a type whose infinity is an ordinary value."""
    return _INFINITIES.get(_temporal_kind(column))


def ends(column: Column) -> tuple[str, str]:
    """Return the last and the first value of a date or timestamp, with which the rule `max` replaces infinity."""
    return _LAST[column.lake_type], _FIRST[column.lake_type]


def in_milliseconds(column: Column) -> bool:
    """Return whether Debezium writes a time or timestamp in milliseconds: with up to three fractional digits."""
    return bool(column.arguments) and column.arguments[0] <= 3


def _not_a_number(column: Column, value: SparkColumn, is_nan: SparkColumn, rules: ValueRules) -> SpecialValue:
    """Apply the rule for NaN."""
    value = F.when(~is_nan, value)
    if rules.nan == "null":
        return SpecialValue(value, null=F.coalesce(is_nan, F.lit(False)))
    reason = (
        f"Cannot read column {column.name}: NaN is not a valid {column.lake_type}. Set `values: {{nan: null}}` in the "
        "table's YAML, then replay the dead letter"
    )
    return SpecialValue(value, rejection=F.when(is_nan, F.lit(reason)))


def _infinite(
    column: Column, value: SparkColumn, up: SparkColumn, down: SparkColumn, rules: ValueRules
) -> SpecialValue:
    """Apply the rule for infinity."""
    kind = column.lake_type
    is_infinite = F.coalesce(up | down, F.lit(False))
    if rules.infinity == "max":
        value = F.when(up, F.lit(_LAST[kind]).cast(kind)).when(down, F.lit(_FIRST[kind]).cast(kind)).otherwise(value)
        return SpecialValue(value)
    reason = F.concat(
        F.lit(f"Cannot read column {column.name}: "),
        F.when(down, F.lit("-infinity")).otherwise(F.lit("infinity")),
        F.lit(
            f" is not a valid {kind}. Set `values: {{infinity: max}}` or "
            "`values: {infinity: null}` in the table's YAML, then replay the dead letter"
        ),
    )
    value = F.when(~is_infinite, value)
    if rules.infinity == "null":
        return SpecialValue(value, null=is_infinite)
    return SpecialValue(value, rejection=F.when(is_infinite, reason))


def _temporal_kind(column: Column) -> str:
    if column.base == "timestamp without time zone" and in_milliseconds(column):
        return "timestamp(ms) without time zone"
    return column.base
