"""The columns of a source table that are not captured: those that the YAML excludes, and those that cannot be captured.

The captured schema and the connector's configuration both leave these columns out, so that the snapshot and the stream
have the same ones (docs/decisions/0049-omitted-columns.md).
"""

from __future__ import annotations

from collections.abc import Sequence

from cdc_lake.contract.errors import ContractError, UnsupportedTypeError
from cdc_lake.contract.schema import column_types
from cdc_lake.contract.schema.captured_schema import EXCLUDED, OmittedColumn, name_fault
from cdc_lake.pipeline.naming import SourcePostgres, TableFlow
from resources.postgres.table_columns import ColumnInfo


def omitted_columns(
    table: TableFlow, postgres: SourcePostgres, columns: Sequence[ColumnInfo]
) -> tuple[OmittedColumn, ...]:
    """Return those of the table's `columns` that are not captured, in their order.

    Raises ContractError if the table lacks a column that exclude_columns names, UnsupportedTypeError if a column of the
    key cannot be captured.
    """
    flow, excluded = table.pipeline, table.spec.exclude_columns
    if lacking := sorted(set(excluded) - {column.name for column in columns}):
        raise ContractError(
            f"Cannot capture table {table.source_table}: it has no column {', '.join(lacking)}, which exclude_columns "
            f"in the YAML of {flow.name} names. Correct the name (case matters), or remove it from the YAML."
        )
    published = any(column.generated for column in columns) and postgres.publishes_generated(
        flow.spec.source.publication
    )
    reasons = {column: EXCLUDED if column.name in excluded else _fault(column, published) for column in columns}
    for column, reason in reasons.items():
        if reason is not None and column.name in table.spec.key:
            raise UnsupportedTypeError(
                f"Cannot capture table {table.source_table}: column {column.name} of its primary key cannot be "
                f"captured ({reason}). Use another key, or change the column (docs/reference/types.md)."
            )
    return tuple(
        OmittedColumn(name=column.name, reason=reason, attnum=column.position)
        for column, reason in reasons.items()
        if reason is not None
    )


def by_reason(omitted: Sequence[OmittedColumn]) -> str:
    """Return the columns with their reasons, for people."""
    return ", ".join(f"{column.name} ({column.reason})" for column in omitted)


def _fault(column: ColumnInfo, published: bool) -> str | None:
    """Return why a column cannot be captured; `published`: whether the publication has stored generated columns."""
    if column.virtual:
        return "virtual generated: the stream does not contain it"
    if column.generated and not published:
        return "generated, and not published"
    declared = column.resolved_type or column.type_name
    if column_types.lake_type(declared, column.element_kind) is None:
        return f"the lake has no type for PostgreSQL's {declared}"
    return name_fault(column.name)
