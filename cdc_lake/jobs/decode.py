"""Debezium's flattened JSON to typed rows: each value as PostgreSQL has it, or a reason why not.

Here: Spark expressions for each type, and what makes a record unreadable. Not here: the table's schema
(contract/schema.py) and what happens to an unreadable record (upsert.py).

How Debezium spells values in JSON with `decimal.handling.mode=string`, `time.precision.mode=adaptive`,
`binary.handling.mode=base64`:
https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-data-types
"""

from __future__ import annotations

import re

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.position import ORDER_COLUMN, order_sql
from cdc_lake.contract.schema import EVENT_FIELDS, Column, TableSchema

REASON = "_reason"
DRIFT = "fields that no schema explains: "
PLACE = ("object", "partition", "offset", "value")


def decode(records: DataFrame, schema: TableSchema) -> DataFrame:
    """Rows of the lake table from raw records: its columns, PLACE, and REASON (NULL for a readable record)."""
    expected = [*(column.name for column in schema.columns), *EVENT_FIELDS]
    # Every field as text first: Spark's own typed parsing would turn what does not fit into a silent NULL.
    text = records.withColumn("_text", F.col("value").cast("string"))
    wire = ", ".join(f"`{name}` string" for name in expected)
    parsed = text.withColumn("_wire", F.from_json("_text", wire)).withColumn("_keys", F.json_object_keys("_text"))
    typed = parsed.select(
        *PLACE,
        "_keys",
        *(typed_value(column).alias(column.name.lower()) for column in schema.columns),
        *(_exact(_wire(name), kind).alias(name.lower()) for name, kind in EVENT_FIELDS.items()),
        (F.encode("_text", "UTF-8") != F.col("value")).alias("_garbled"),
        F.expr(order_sql("epoch", "_wire.`__snapshot`", "cast(_wire.`__lsn` AS BIGINT)")).alias(ORDER_COLUMN),
        *(_wire(name).isNotNull().alias(f"_has_{name}") for name in expected),
    )
    return typed.withColumn(REASON, _reason(schema, expected)).drop(
        "_keys", "_garbled", *(f"_has_{name}" for name in expected)
    )


def typed_value(column: Column) -> SparkColumn:
    """A column's value from its text in the record; NULL where the text is NULL or does not fit."""
    value = _wire(column.name)
    match column.base:
        case "date":
            return F.date_add(F.lit("1970-01-01").cast("date"), _exact(value, "int"))
        case "timestamp without time zone":
            return F.timestamp_micros(_micros(column, value))
        case "timestamp with time zone":
            return F.when(value.rlike(r"\dT\d\d:"), value.cast("timestamp"))
        case "time without time zone":
            return _micros(column, value)
        case "bytea":
            return F.try_to_binary(value, F.lit("base64"))
        case _:
            return _exact(value, column.lake_type)


def _micros(column: Column, value: SparkColumn) -> SparkColumn:
    precision = column.arguments[0] if column.arguments else 6
    return F.try_multiply(_exact(value, "bigint"), F.lit(1000 if precision <= 3 else 1))


def _exact(value: SparkColumn, lake_type: str) -> SparkColumn:
    """A text in a type, NULL where it does not fit to the last digit: Spark's cast alone makes 1 of `1.9`."""
    if lake_type in {"int", "bigint"}:
        return F.when(value.rlike(r"^-?\d+$"), value.cast(lake_type))
    if lake_type == "boolean":
        return F.when(value.isin("true", "false"), value.cast(lake_type))
    if found := re.fullmatch(r"decimal\(\d+,(\d+)\)", lake_type):
        # Java writes a zero of ten places as 0E-10.
        fraction = F.regexp_replace(F.regexp_extract(value, r"\.(\d+)", 1), "0+$", "")
        exponent = F.coalesce(F.regexp_extract(value, r"[eE]([+-]?\d+)$", 1).cast("int"), F.lit(0))
        return F.when(F.length(fraction) - exponent <= int(found[1]), value.cast(lake_type))
    return value.cast(lake_type)


def _wire(name: str) -> SparkColumn:
    return F.col("_wire").getField(name)


def _reason(schema: TableSchema, expected: list[str]) -> SparkColumn:
    missing = F.array_except(F.array(*(F.lit(name) for name in expected)), F.col("_keys"))
    extra = F.array_except(F.col("_keys"), F.array(*(F.lit(name) for name in expected)))
    lost = [
        F.when(
            F.col(f"_has_{name}") & F.col(name.lower()).isNull(),
            F.lit(f"the value of {name} is not a {kind}"),
        )
        for name, kind in _kinds(schema)
    ]
    keyless = [F.when(F.col(name.lower()).isNull(), F.lit(f"the key column {name} is NULL")) for name in schema.key]
    unordered = F.when(F.col("__lsn").isNull(), F.lit("the record has no __lsn to order it by"))
    undecided = F.when(F.col("__deleted").isNull(), F.lit("the record does not say in __deleted whether it is deleted"))
    rules = [
        F.when(F.col("_garbled"), F.lit("the record is not UTF-8")),
        F.when(F.col("_keys").isNull(), F.lit("the record is not a JSON object")),
        F.when(F.size(missing) > 0, F.concat(F.lit("fields are missing: "), F.concat_ws(", ", missing))),
        F.when(F.size(extra) > 0, F.concat(F.lit(DRIFT), F.concat_ws(", ", extra))),
        *lost,
        *keyless,
        unordered,
        undecided,
    ]
    return F.coalesce(*rules)


def _kinds(schema: TableSchema) -> list[tuple[str, str]]:
    return [*((column.name, column.lake_type) for column in schema.columns), *EVENT_FIELDS.items()]
