"""The columns of a source table that are not captured: those that the YAML excludes, and those that cannot be captured.

The captured schema and the connector's configuration both leave these columns out, so that the snapshot and the stream
have the same ones (docs/decisions/0049-omitted-columns.md).
"""

from __future__ import annotations

from collections.abc import Sequence, Set
from typing import Literal

from cdc_lake.contract.errors import ContractError, UnsupportedTypeError
from cdc_lake.contract.schema import column_types
from cdc_lake.contract.schema.captured_schema import EXCLUDED, OmittedColumn, name_fault
from cdc_lake.pipeline.pipeline import SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from resources.postgres.table_columns import ColumnInfo

NULL_REPLACED = "it may be NULL and has a default, which Apicurio's converter would write instead of NULL"


def omitted_columns(
    table: PipelineTable, postgres: SourcePostgres, columns: Sequence[ColumnInfo]
) -> tuple[OmittedColumn, ...]:
    """Return the columns of `columns` that are not captured, in the same order.

    Raises ContractError if the table lacks a column that exclude_columns names, UnsupportedTypeError if a column of the
    key cannot be captured.
    """
    pipeline, excluded = table.pipeline, table.excluded_columns
    if lacking := sorted(set(excluded) - {column.name for column in columns}):
        raise ContractError(
            f"Cannot capture table {table.source_table}: it has no column {', '.join(lacking)}, which exclude_columns "
            f"in the YAML of {pipeline.name} names. Correct the name (case matters), or remove it from the YAML."
        )
    unpublished = _unpublished(table, postgres, columns)
    omitted = []
    for column in columns:
        reason = EXCLUDED if column.name in excluded else _fault(table, column, unpublished)
        if reason is None:
            continue
        if column.name in table.spec.key:
            raise UnsupportedTypeError(
                f"Cannot capture table {table.source_table}: column {column.name} of its primary key cannot be "
                f"captured ({reason}). Use another key, or change the column (docs/reference/types.md)."
            )
        streamed = column.name not in unpublished
        omitted.append(OmittedColumn(name=column.name, reason=reason, attnum=column.position, streamed=streamed))
    return tuple(omitted)


def replica_identity(table: PipelineTable, postgres: SourcePostgres) -> Literal["full", "default"]:
    """Return the replica identity that the table must have: FULL, unless a generated column is not published.

    PostgreSQL 18 rejects UPDATE and DELETE of a published table if its replica identity contains such a column.
    """
    columns = postgres.columns(table.pipeline.spec.source.schema_, table.name)
    return "default" if _unpublished(table, postgres, columns) else "full"


def describe(omitted: Sequence[OmittedColumn]) -> str:
    """Return the columns, each with the reason why it is omitted, as text for messages."""
    return ", ".join(f"{column.name} ({column.reason})" for column in omitted)


def _unpublished(table: PipelineTable, postgres: SourcePostgres, columns: Sequence[ColumnInfo]) -> set[str]:
    """Return the names of generated columns that the publication does not contain; empty for a polled table."""
    if table.pipeline.polled:
        return set()
    generated = [column for column in columns if column.generated]
    stored = bool(generated) and postgres.publishes_generated(table.pipeline.spec.source.publication)
    return {column.name for column in generated if column.virtual or not stored}


def _fault(table: PipelineTable, column: ColumnInfo, unpublished: Set[str]) -> str | None:
    """Return why a column cannot be captured; None if it can.

    Apicurio's converter reads a field with Struct.get(), which replaces NULL with the default of the field's schema.
    Confluent's converter avoids this with the option ignore.default.for.nullables.
    """
    if column.name in unpublished:
        return "virtual generated, never published" if column.virtual else "generated, and not published"
    declared = column.resolved_type or column.type_name
    if column_types.lake_type(declared, column.element_kind) is None:
        return f"the lake has no type for PostgreSQL's {declared}"
    streamed_by_apicurio = table.pipeline.spec.stream.registry == "apicurio" and not table.pipeline.polled
    if streamed_by_apicurio and column.nullable and column.default is not None:
        return NULL_REPLACED
    return name_fault(column.name)
