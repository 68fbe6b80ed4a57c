"""Debezium's flattened JSON to typed rows: each value as PostgreSQL has it, or a reason why not."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import reduce
from operator import add, or_

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.schema.captured_schema import EVENT_FIELDS, TableSchema
from cdc_lake.contract.schema.record_versions import LakeColumn, Reading, readings
from cdc_lake.contract.schema.special_values import STRICT, ValueRules
from cdc_lake.contract.table.event_order import ORDER_COLUMN, order_sql
from cdc_lake.jobs.apply import debezium_types

# No column of the source begins with "__" (contract/schema/captured_schema.py).
REASON = "__reason"
UNAVAILABLE = "__unavailable"
DRIFT = "fields that no schema explains: "
OBJECT, PARTITION, OFFSET, VALUE = PLACE = ("__object", "__partition", "__offset", "__value")
"""Where a record is: raw_reader's columns under names of their own."""
_SHOWN = 100
_MALFORMED = "__malformed"
# Spark alone takes 'text' and NaN for JSON, as Hive does.
_STRICT = {
    "allowSingleQuotes": "false",
    "allowNonNumericNumbers": "false",
    "columnNameOfCorruptRecord": _MALFORMED,
}


def decode(
    records: DataFrame,
    versions: TableSchema | Sequence[TableSchema],
    rules: ValueRules = STRICT,
    epochs: Iterable[int] | None = None,
) -> DataFrame:
    """Rows of the lake table from raw records: its columns, PLACE, REASON and UNAVAILABLE.

    REASON is NULL for a readable record. UNAVAILABLE names the columns whose value PostgreSQL left out (toast.py).
    `versions` are all that may explain a record, oldest first; the rows have the columns of the last one. `epochs` are
    those that the records are of, where that is known.
    """
    known = [versions] if isinstance(versions, TableSchema) else versions
    newest = known[-1]
    read = readings(known, epochs)
    if len(read) == 1:
        return _decode(records, read[0], newest, rules)
    return reduce(DataFrame.unionByName, (_decode(records.where(_epochs(each)), each, newest, rules) for each in read))


def _epochs(reading: Reading) -> SparkColumn:
    epoch = F.col("epoch")
    return (epoch >= reading.first) & (F.lit(True) if reading.end is None else epoch < reading.end)


def _decode(records: DataFrame, reading: Reading, schema: TableSchema, rules: ValueRules) -> DataFrame:
    fields = [*dict.fromkeys(field.name for column in reading.columns for field in column.fields), *EVENT_FIELDS]
    # Every field as text first: Spark's own typed parsing would turn what does not fit into a silent NULL.
    text = records.withColumn("_text", F.col("value").cast("string"))
    parsed = text.withColumn("_wire", _parsed((*fields, _MALFORMED))).withColumn("_keys", F.json_object_keys("_text"))
    values = [_Value(column, rules) for column in reading.columns]
    events = [(name, kind, debezium_types.exact(_wire(name), kind)) for name, kind in EVENT_FIELDS.items()]
    return parsed.select(
        *(F.col(name.removeprefix("__")).alias(name) for name in PLACE),
        *(value.typed.alias(value.name) for value in values),
        *(value.alias(name.lower()) for name, _, value in events),
        F.expr(order_sql("epoch", "_wire.`__snapshot`", "cast(_wire.`__lsn` AS BIGINT)")).alias(ORDER_COLUMN),
        F.array_compact(F.array(*(value.unavailable for value in values))).alias(UNAVAILABLE),
        F.coalesce(
            F.when(F.encode("_text", "UTF-8") != F.col("value"), F.lit("the record is not UTF-8")),
            F.when(F.col("_keys").isNull() | _wire(_MALFORMED).isNotNull(), F.lit("the record is not a JSON object")),
            F.when(~_one_value(F.col("_text")), F.lit("the record is more than one JSON object")),
            *_unexplained(reading),
            *(value.refused for value in values),
            *(_lost(name, kind, _wire(name), value) for name, kind, value in events),
            *(F.when(_value(values, name).isNull(), F.lit(f"the key column {name} is NULL")) for name in schema.key),
            _of_another(schema.table),
            F.when(_wire("__lsn").isNull(), F.lit("the record has no __lsn to order it by")),
            F.when(_wire("__deleted").isNull(), F.lit("the record does not say in __deleted whether it is deleted")),
        ).alias(REASON),
    )


def _of_another(table: str) -> SparkColumn:
    """The reason of a record of another table: Debezium makes one topic of names that differ by what it replaces."""
    own = F.concat_ws(".", _wire("__schema"), _wire("__table"))
    return F.when(own != table, F.concat(F.lit("the record is of table "), own, F.lit(f", not of {table}")))


def _one_value(text: SparkColumn) -> SparkColumn:
    """Whether a JSON text is one value: Spark reads the first and leaves out what follows it."""
    count = F.json_array_length(F.concat(F.lit("["), text, F.lit("]")))
    return F.coalesce(count == 1, F.lit(False))


class _Value:
    """One lake column's value in a record, from whichever field the record has for it."""

    def __init__(self, column: LakeColumn, rules: ValueRules) -> None:
        self.name = column.name
        spelled = [debezium_types.spelled(field, _wire(field.name), rules) for field in column.fields]
        if column.missing is None:
            older = F.lit(None).cast(column.lake_type)
        else:
            older = debezium_types.spelled(column.missing, F.lit(column.missing.missing), rules).value
        typed = older if not column.required else F.lit(None).cast(column.lake_type)
        for field, each in zip(reversed(column.fields), reversed(spelled), strict=True):
            value = each.value if field.lake_type == column.lake_type else _try_cast(each.value, column.lake_type)
            typed = value if column.required and len(spelled) == 1 else F.when(_has(field.name), value).otherwise(typed)
        self.typed = typed
        self.refused = F.coalesce(
            F.lit(None).cast("string"),
            *(
                F.coalesce(each.refused, _lost(field.name, field.lake_type, _wire(field.name), each.value, each.null))
                for field, each in zip(column.fields, spelled, strict=True)
            ),
        )
        absent = _any([each.unavailable for each in spelled])
        self.unavailable = F.when(absent, F.lit(self.name))


def _value(values: Sequence[_Value], name: str) -> SparkColumn:
    return next(value.typed for value in values if value.name == name.lower())


def _try_cast(value: SparkColumn, lake_type: str) -> SparkColumn:
    """A value of an older epoch in the type that its column has now; what can't be is NULL, since the snapshot in
    between told every row anew.
    """
    return value.cast(lake_type)


def _parsed(fields: Sequence[str]) -> SparkColumn:
    """The JSON object in `_text`, each of its fields a text: a struct for _wire()."""
    wire = ", ".join(f"`{name}` string" for name in fields)
    named = ", ".join(f"`{_apart(name)}`: string" for name in fields)
    return F.from_json("_text", wire, _STRICT).cast(f"struct<{named}>")


def _wire(name: str) -> SparkColumn:
    return F.col("_wire").getField(_apart(name))


def _apart(name: str) -> str:
    """A name that differs from others' by more than case: Spark finds a struct's field whatever its case."""
    capitals = "".join(str(int(letter.isupper())) for letter in name)
    return f"{name}#{capitals}" if "1" in capitals else name


def _has(name: str) -> SparkColumn:
    return F.array_contains("_keys", name)


def _any(conditions: Sequence[SparkColumn]) -> SparkColumn:
    return reduce(or_, conditions, F.lit(False))


def _lost(name: str, kind: str, wire: SparkColumn, value: SparkColumn, null: SparkColumn | None = None) -> SparkColumn:
    """The reason where a text is there and no value was made of it, but for those that are to be NULL."""
    gone = wire.isNotNull() & value.isNull()
    said = F.concat(F.lit(f"the value of {name} is not a {kind}: "), F.substring(wire, 1, _SHOWN))
    return F.when(gone if null is None else gone & ~null, said)


def _unexplained(reading: Reading) -> list[SparkColumn]:
    """Fields that are no column's, columns without their field, and columns with two fields."""
    single = [column.fields[0].name for column in reading.columns if column.required and len(column.fields) == 1]
    needed = F.array(*(F.lit(name) for name in [*single, *EVENT_FIELDS]))
    renamed = [column for column in reading.columns if len(column.fields) > 1]
    absent = [
        F.when(~_any([_has(field.name) for field in column.fields]), F.lit(column.name))
        for column in renamed
        if column.required
    ]
    missing = F.array_except(needed, F.col("_keys"))
    if absent:
        missing = F.concat(missing, F.array_compact(F.array(*absent)))
    extra = F.array_except(F.col("_keys"), F.array(*(F.lit(name) for name in sorted(reading.explained()))))
    twice = [
        F.when(
            reduce(add, [_has(field.name).cast("int") for field in column.fields]) > 1,
            F.lit(f"more than one field is column {column.name}"),
        )
        for column in renamed
    ]
    return [
        F.when(F.size(missing) > 0, F.concat(F.lit("fields are missing: "), F.concat_ws(", ", missing))),
        F.when(F.size(extra) > 0, F.concat(F.lit(DRIFT), F.concat_ws(", ", extra))),
        F.when(F.size("_keys") > F.size(F.array_distinct("_keys")), F.lit("a field is there twice")),
        *twice,
    ]
