"""Debezium's flattened JSON to typed rows: each value as PostgreSQL has it, or a reason why not.

Here: Spark expressions for each type, and what makes a record unreadable. Not here: the table's schema
(contract/schema.py) and what happens to an unreadable record (upsert.py).

How Debezium spells values in JSON with `decimal.handling.mode=string`, `time.precision.mode=adaptive`,
`binary.handling.mode=base64`:
https://debezium.io/documentation/reference/stable/connectors/postgresql.html#postgresql-data-types
"""

from __future__ import annotations

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
        *(_wire(name).cast(kind).alias(name.lower()) for name, kind in EVENT_FIELDS.items()),
        F.expr(order_sql("epoch", "_wire.`__snapshot`", "cast(_wire.`__lsn` AS BIGINT)")).alias(ORDER_COLUMN),
        *(_wire(name).isNotNull().alias(f"_has_{name}") for name in expected),
    )
    return typed.withColumn(REASON, _reason(schema, expected)).drop("_keys", *(f"_has_{name}" for name in expected))


def typed_value(column: Column) -> SparkColumn:
    """A column's value from its text in the record; NULL where the text is NULL or does not fit."""
    value = _wire(column.name)
    match column.base:
        case "date":
            return F.date_add(F.lit("1970-01-01").cast("date"), value.cast("int"))
        case "timestamp without time zone":
            unit = F.timestamp_millis if _precision(column) <= 3 else F.timestamp_micros
            return unit(value.cast("bigint"))
        case "time without time zone":
            scale = 1000 if _precision(column) <= 3 else 1
            return value.cast("bigint") * F.lit(scale)
        case "bytea":
            return F.unbase64(value)
        case _:
            return value.cast(column.lake_type)


def _precision(column: Column) -> int:
    return column.arguments[0] if column.arguments else 6


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
    rules = [
        F.when(F.col("_keys").isNull(), F.lit("the record is not a JSON object")),
        F.when(F.size(missing) > 0, F.concat(F.lit("fields are missing: "), F.concat_ws(", ", missing))),
        F.when(F.size(extra) > 0, F.concat(F.lit(DRIFT), F.concat_ws(", ", extra))),
        *lost,
        *keyless,
        unordered,
    ]
    return F.coalesce(*rules)


def _kinds(schema: TableSchema) -> list[tuple[str, str]]:
    return [*((column.name, column.lake_type) for column in schema.columns), *EVENT_FIELDS.items()]
