"""The columns of a catalog table of JSON objects, and the changes of a source table that it can follow.

A column has the name of a field of the records, and the type in which Debezium writes the field.
"""

from __future__ import annotations

from collections.abc import Sequence

from cdc_lake.contract.errors import SchemaChangeError, UnsupportedTypeError, reset_advice
from cdc_lake.contract.schema.captured_schema import EVENT_FIELDS, Column, TableSchema
from cdc_lake.contract.schema.evolution import match_columns
from cdc_lake.jobs.apply.special_values import in_milliseconds

NUMBERS = frozenset({"int", "bigint", "float", "double", "boolean"})
"""The types of fields that are not texts."""


def fields(schema: TableSchema) -> list[tuple[str, str]]:
    """Return names and Hive types of the table's columns: one for each field that a record can have."""
    own = [(column.name.lower(), field_type(column)) for column in (*schema.columns, *schema.dropped)]
    events = [(name.lower(), "string" if kind == "boolean" else kind) for name, kind in EVENT_FIELDS.items()]
    return [*own, *events]


def require_readable(versions: Sequence[TableSchema], seen: TableSchema, pipeline: str) -> None:
    """Raise if a catalog table of JSON objects cannot return the columns of `seen`, the schema after `versions`.

    Raises UnsupportedTypeError for a bit string. Raises SchemaChangeError if the objects have different texts of a
    column's values, or if a record without a field cannot be distinguished from one whose field is NULL.
    """
    for column in seen.columns:
        if column.base == "bit" and column.lake_type == "string":
            raise UnsupportedTypeError(
                f"Cannot capture column {column.name} of {seen.table}: a catalog table of JSON objects cannot return "
                f"values of type {column.type}. Land the table as Parquet, or name the column in exclude_columns."
            )
    matched = [match_columns(version, seen) for version in versions]
    epoch = max([seen.epoch, *(version.epoch for version in versions)])
    for column in seen.columns:
        known = [(version, found.get(column.name)) for version, found in zip(versions, matched, strict=True)]
        before = [was for _, was in known if was is not None]
        if before and _form(before[-1]) != _form(column):
            raise SchemaChangeError(
                f"Cannot change the type of column {column.name} of {seen.table} from {before[-1].type} to "
                f"{column.type}: the landed JSON objects have other texts of its values. Nothing was changed. Rename "
                f"the column at the source, or {reset_advice(pipeline)}."
            )
        lacking = any(was is None for version, was in known if version.epoch == epoch)
        default = next((each.missing for each in (column, *before) if each.missing is not None), None)
        if lacking and default is not None and column.nullable and column.inserted is None:
            raise SchemaChangeError(
                f"Cannot add column {column.name} to {seen.table}: it may be NULL, and older rows have the value "
                f"{default!r}, which the landed JSON objects do not show. Nothing was changed. Make the column NOT "
                f"NULL, or run `cdc-lake resnapshot {pipeline}`, which reads every row again."
            )


def field_type(column: Column) -> str:
    """Return the Hive type of a field: Debezium writes dates and times as numbers, decimals as texts."""
    match column.base:
        case "date":
            return "int"
        case "timestamp without time zone" | "time without time zone":
            return "bigint"
    return column.lake_type if column.lake_type in NUMBERS else "string"


def _form(column: Column) -> str:
    """Return a name for the text form of a column's values, if the lake's type does not decide it."""
    match column.base:
        case "timestamp without time zone" | "time without time zone":
            return f"{column.base} in {'milliseconds' if in_milliseconds(column) else 'microseconds'}"
        case "timestamp with time zone":
            return column.base
        case "numeric" if column.lake_type == "string":
            return column.base
    return "array" if column.type.endswith("[]") else ""
