"""Decode the fields of Debezium's records to typed rows: each value as in PostgreSQL, or why it is unreadable."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache, reduce
from operator import or_

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.schema.captured_schema import EVENT_FIELDS, TableSchema
from cdc_lake.contract.schema.record_versions import LakeColumn, RecordLayout, record_layouts
from cdc_lake.contract.schema.value_rules import STRICT, ValueRules
from cdc_lake.contract.table.event_order import INCREMENTAL, ORDER_COLUMN, order_sql
from cdc_lake.jobs.apply import debezium_types
from cdc_lake.jobs.apply.record_fields import TEXTS, UNREADABLE, field_text, has_field

# No captured column begins with "__" (contract/schema/captured_schema.py).
REASON = "__reason"
UNAVAILABLE = "__unavailable"
OBJECT, PARTITION, OFFSET = POSITION_COLUMNS = ("__object", "__partition", "__offset")
VALUE = "__value"
RECORD_COLUMNS = (*POSITION_COLUMNS, VALUE)
"""The columns of raw_reader, under names that no source column has."""
_SHOWN_CHARACTERS = 100


def decode(
    records: DataFrame,
    versions: TableSchema | Sequence[TableSchema],
    rules: ValueRules = STRICT,
    epochs: Iterable[int] | None = None,
    extra_columns: Sequence[str] = (),
) -> DataFrame:
    """Decode parsed records to rows of the lake table: its columns, RECORD_COLUMNS, REASON and UNAVAILABLE.

    `records` are those of raw_reader.read() or record_fields.parse(). REASON is NULL for a readable record. UNAVAILABLE
    lists the columns whose value PostgreSQL left out (unavailable_values.py). `versions` are the schema versions,
    oldest first; the rows have the columns of the last one. `epochs` are the epochs of the records, if the caller knows
    them. `extra_columns` are columns of `records` to keep.
    """
    known = [versions] if isinstance(versions, TableSchema) else versions
    newest = known[-1]
    layouts = record_layouts(known, epochs)
    if len(layouts) == 1:
        return _decode(records, layouts[0], newest, rules, extra_columns)
    parts = (_decode(records.where(_epochs(each)), each, newest, rules, extra_columns) for each in layouts)
    return reduce(DataFrame.unionByName, parts)


def _epochs(layout: RecordLayout) -> SparkColumn:
    epoch = F.col("epoch")
    return (epoch >= layout.first) & (F.lit(True) if layout.end is None else epoch < layout.end)


def _decode(
    records: DataFrame, layout: RecordLayout, schema: TableSchema, rules: ValueRules, extra_columns: Sequence[str]
) -> DataFrame:
    gateway = records.sparkSession.sparkContext._gateway
    return records.select(*_columns(gateway, layout, schema, rules, tuple(extra_columns)))


@lru_cache(maxsize=256)
def _columns(
    _gateway: object, layout: RecordLayout, schema: TableSchema, rules: ValueRules, extra_columns: tuple[str, ...]
) -> tuple[SparkColumn | str, ...]:
    """Return the columns of a decoded record, which are objects of the Java process behind the gateway.

    Building them takes some 200 calls of that process for each column, longer than decoding a small batch.
    """
    keys = {name.lower() for name in schema.key}
    key_only = None if layout.whole_deletes else field_text("__op").eqNullSafe("d")
    values = [_LakeValue(each, rules, None if each.name in keys else key_only) for each in layout.columns]
    # Spark's typed parsing would silently turn invalid values into NULL.
    events = [(name, kind, debezium_types.exact_cast(field_text(name), kind)) for name, kind in EVENT_FIELDS.items()]
    return (
        *(F.col(name.removeprefix("__")).alias(name) for name in RECORD_COLUMNS),
        *extra_columns,
        *(value.typed.alias(value.name) for value in values),
        *(value.alias(name.lower()) for name, _, value in events),
        F.expr(
            order_sql("epoch", f"{TEXTS}.`__snapshot`", f"{TEXTS}.`__op`", f"cast({TEXTS}.`__lsn` AS BIGINT)")
        ).alias(ORDER_COLUMN),
        F.array_compact(F.array(*(value.unavailable for value in values))).alias(UNAVAILABLE),
        F.coalesce(
            UNREADABLE,
            *(value.rejection for value in values),
            *(_cast_error(name, kind, field_text(name), value) for name, kind, value in events),
            *(
                F.when(_typed_value(values, name).isNull(), F.lit(f"the key column {name} is NULL"))
                for name in schema.key
            ),
            _wrong_table_error(schema.table),
            F.when(
                field_text("__lsn").isNull()
                & ~(field_text("__snapshot").eqNullSafe(INCREMENTAL) & field_text("__op").eqNullSafe("r")),
                F.lit("the record has no __lsn, which orders changes"),
            ),
            F.when(field_text("__deleted").isNull(), F.lit("the record has no __deleted")),
        ).alias(REASON),
    )


def _wrong_table_error(table: str) -> SparkColumn:
    """Return the reason for a record of another table: two names that Debezium sanitizes alike share one topic."""
    own = F.concat_ws(".", field_text("__schema"), field_text("__table"))
    return F.when(own != table, F.concat(F.lit("the record belongs to table "), own, F.lit(f", not to {table}")))


class _LakeValue:
    """Expressions for one lake column: its typed value, the reason for rejecting it, and its name if it is unavailable.

    The value is read from the field that the record has for the column; a renamed column can have several fields.
    `key_only` is true for a delete for which PostgreSQL sent only the key: its other fields have no values. It is None
    for a key column, and if PostgreSQL sends whole rows.
    """

    def __init__(self, column: LakeColumn, rules: ValueRules, key_only: SparkColumn | None) -> None:
        self.name = column.name
        parsed = [debezium_types.parse_value(field, field_text(field.name), rules) for field in column.fields]
        if column.missing is None:
            default = F.lit(None).cast(column.lake_type)
        else:
            default = debezium_types.parse_value(column.missing, F.lit(column.missing.missing), rules).value
        typed = default if not column.required else F.lit(None).cast(column.lake_type)
        for field, each in zip(reversed(column.fields), reversed(parsed), strict=True):
            value = _cast_to_current(each.value, field.lake_type, column.lake_type)
            typed = value if column.certain else F.when(has_field(field.name), value).otherwise(typed)
        self.typed = typed
        self.rejection = F.coalesce(
            F.lit(None).cast("string"),
            *(
                F.coalesce(
                    each.rejection,
                    _cast_error(field.name, field.lake_type, field_text(field.name), each.value, each.null),
                )
                for field, each in zip(column.fields, parsed, strict=True)
            ),
        )
        absent = _any([each.unavailable for each in parsed])
        if key_only is not None:
            self.typed, self.rejection = F.when(~key_only, self.typed), F.when(~key_only, self.rejection)
            absent = key_only | absent
        self.unavailable = F.when(absent, F.lit(self.name))


def _typed_value(values: Sequence[_LakeValue], name: str) -> SparkColumn:
    return next(value.typed for value in values if value.name == name.lower())


def _cast_to_current(value: SparkColumn, written: str, current: str) -> SparkColumn:
    """Cast a value of an older epoch to the current type of its column.

    A value that cannot be cast becomes NULL: the snapshot in between has re-sent every row.
    """
    return value if written == current else value.cast(current)


def _any(conditions: Sequence[SparkColumn]) -> SparkColumn:
    return reduce(or_, conditions, F.lit(False))


def _cast_error(
    name: str, kind: str, field_text: SparkColumn, value: SparkColumn, null: SparkColumn | None = None
) -> SparkColumn:
    """Return the reason for a text that is not a valid value of the type, unless a rule makes it NULL."""
    invalid = field_text.isNotNull() & value.isNull()
    text = F.substring(field_text, 1, _SHOWN_CHARACTERS)
    reason = F.concat(F.lit(f"Cannot read column {name}: '"), text, F.lit(f"' is not a valid {kind}"))
    return F.when(invalid if null is None else invalid & ~null, reason)
