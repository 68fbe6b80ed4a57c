"""Capture the columns of a source table, and store changed columns as a new schema version.

The source asset captures them when it is materialised, and the lake asset before it applies landed records, so that a
schema version exists for all records that are applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.schema import captured_schema, evolution
from cdc_lake.contract.schema.captured_schema import OmittedColumn
from cdc_lake.jobs.apply import json_fields
from cdc_lake.pipeline.pipeline import SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import polled_source
from cdc_lake.pipeline.source_health.omitted_columns import omitted_columns
from cdc_lake.pipeline.source_health.transformed_columns import require_transformable, transformed
from resources.postgres.table_columns import ColumnInfo, TableCatalog

_PARTITION_TYPES = frozenset({"string", "date", "int", "bigint", "boolean"})
"""The lake types of partition columns: their values have one text each, which readers convert back."""


@dataclass(frozen=True)
class Capture:
    """The newest schema, whether this call stored it, and the changes, one phrase per column."""

    schema: captured_schema.TableSchema
    added: bool
    changes: Sequence[str]


def capture(table: PipelineTable, postgres: SourcePostgres, bucket: ObjectStore, *, epoch: int = 0) -> Capture:
    """Store the source table's schema as a new version if it changed.

    `epoch` is the epoch of the records that follow. A resnapshot passes the epoch that it begins, which allows every
    change, because all rows are read again. Raises ContractError for a table that cannot be captured or does not match
    its YAML, UnsupportedTypeError for a column that must be captured and cannot be, and SchemaChangeError for a change
    that needs a resnapshot.
    """
    pipeline = table.pipeline
    seen, columns = _polled(table, postgres, epoch) if pipeline.polled else _streamed(table, postgres, epoch)
    found = captured_schema.versions(bucket, pipeline.name, table.source_table)
    if found and max(epoch, found[-1].epoch) == found[-1].epoch:
        _require_known_defaults(table, postgres, found[-1], seen, columns)
    _require_partitionable(table, seen)
    if any(not each.is_hudi for each in table.in_targets):
        captured_schema.require_valid_columns(seen)
        if found:
            evolution.require_one_landed_type(found[-1], seen, pipeline.name)
        if table.landing.format == "json":
            json_fields.require_readable(found, seen, pipeline.name)
    schema, added = captured_schema.record(bucket, pipeline.name, seen)
    return Capture(schema, added, evolution.describe_changes(found[-1], schema) if found and added else ())


def _polled(
    table: PipelineTable, postgres: SourcePostgres, epoch: int
) -> tuple[captured_schema.TableSchema, Sequence[ColumnInfo] | None]:
    """Return the schema of a polled table, and its columns in the catalog (None for a query).

    Raises what polled_source.require_pollable() raises.
    """
    seen = captured_schema.TableSchema(
        version=0, table=table.source_table, columns=(), key=tuple(table.spec.key), epoch=epoch
    )
    infos: Sequence[ColumnInfo] | None = None
    if table.poll.sql:
        selected = polled_source.query_columns(table, postgres)
        columns = tuple(
            captured_schema.Column(name=each.name, type=each.type_name, kind=each.kind) for each in selected
        )
        require_transformable(table, selected, ())
        seen = seen.model_copy(update={"columns": transformed(table, columns)})
    else:
        catalog = postgres.catalog(table.pipeline.spec.source.schema_, table.polled_table)
        _require_all_rows(table, postgres, catalog)
        omitted, infos = _omitted_and_captured(table, postgres, catalog)
        columns = tuple(_column(column, catalog) for column in infos)
        require_transformable(table, catalog.columns, omitted)
        storage = catalog.storage
        found = {
            "columns": transformed(table, columns),
            "omitted": omitted,
            "oid": storage.oid,
            "filenode": storage.filenode,
        }
        seen = seen.model_copy(update=found)
    polled_source.require_pollable(table, postgres, columns)
    return seen, infos


def _streamed(
    table: PipelineTable, postgres: SourcePostgres, epoch: int
) -> tuple[captured_schema.TableSchema, Sequence[ColumnInfo]]:
    """Return the schema of a table that a connector captures, and its columns in the catalog.

    Raises what capture() raises.
    """
    pipeline = table.pipeline
    catalog = postgres.catalog(pipeline.spec.source.schema_, table.name)
    if set(catalog.key) != set(table.spec.key):
        raise ContractError(
            f"Cannot capture table {table.source_table}: it has primary key ({', '.join(catalog.key) or 'none'}), but "
            f"the YAML of {pipeline.name} has key: [{', '.join(table.spec.key)}]. Change the YAML or the table."
        )
    if catalog.deferrable:
        raise ContractError(
            f"Cannot capture table {table.source_table}: its primary key is DEFERRABLE, so that one transaction can "
            "give a row the previous key of another row, and the lake could delete the wrong one. Make the key NOT "
            "DEFERRABLE."
        )
    omitted, captured = _omitted_and_captured(table, postgres, catalog)
    columns = {column.name.lower() for column in captured}
    if lacking := [name for name in table.spec.partition_by if name.lower() not in columns]:
        raise ContractError(
            f"Cannot partition the lake table {table.name}: table {table.source_table} has no captured column "
            f"{', '.join(lacking)}, which partition_by in the YAML of {pipeline.name} names. Name other columns. If "
            f"the column was renamed or dropped, also run `cdc-lake reset {pipeline.name}`: stored rows do not move to "
            "other partitions."
        )
    if catalog.children or catalog.storage.filenode is None:
        raise ContractError(
            f"Cannot capture table {table.source_table}: its rows are stored in partitions or child tables "
            f"({', '.join(catalog.children) or 'none yet'}), which can be attached and dropped without change events "
            "for their rows. Capture each of them as a separate table."
        )
    _require_all_rows(table, postgres, catalog)
    require_transformable(table, catalog.columns, omitted)
    seen = captured_schema.TableSchema(
        version=0,
        table=table.source_table,
        columns=transformed(table, [_column(column, catalog) for column in captured]),
        key=catalog.key,
        omitted=omitted,
        oid=catalog.storage.oid,
        filenode=catalog.storage.filenode,
        epoch=epoch,
    )
    return seen, captured


def _omitted_and_captured(
    table: PipelineTable, postgres: SourcePostgres, catalog: TableCatalog
) -> tuple[tuple[OmittedColumn, ...], list[ColumnInfo]]:
    omitted = omitted_columns(table, postgres, catalog.columns)
    names = {column.name for column in omitted}
    return omitted, [column for column in catalog.columns if column.name not in names]


def _require_partitionable(table: PipelineTable, seen: captured_schema.TableSchema) -> None:
    """Raise ContractError if raw objects or lake table have a partition column that readers cannot read from a key.

    Columns that the lake table's partition_by names and the source lacks are reported before.
    """
    types = {column.name.lower(): column for column in seen.columns}
    for option, names, what in (
        ("landing.partition_by", table.landing.partition_by, f"the raw objects of table {table.source_table}"),
        ("partition_by", table.spec.partition_by, f"the lake table {table.name}"),
    ):
        for name in names:
            column = types.get(name.lower())
            if column is None:
                raise ContractError(
                    f"Cannot partition {what}: table {table.source_table} has no captured column {name}, which "
                    f"{option} in the YAML of {table.pipeline.name} names. Name other columns."
                )
            if column.lake_type not in _PARTITION_TYPES:
                raise ContractError(
                    f"Cannot partition {what}: column {name} has type {column.type}, which a partition column cannot "
                    f"have. Name a text, date, integer or boolean column in {option} in the YAML of "
                    f"{table.pipeline.name}."
                )


def _require_all_rows(table: PipelineTable, postgres: SourcePostgres, catalog: TableCatalog) -> None:
    """Raise ContractError if a policy hides rows of the table from the login."""
    if catalog.row_security:
        raise ContractError(
            f"Cannot capture table {table.source_table}: row-level security hides rows from user "
            f"{postgres.login().user}, so that a snapshot would lack them without an error. Give the user BYPASSRLS or "
            "make it the table's owner; if the policies apply to the owner too, run ALTER TABLE … NO FORCE ROW "
            "LEVEL SECURITY."
        )


def require_snapshot_safe_dates(table: PipelineTable, postgres: SourcePostgres) -> None:
    """Raise ContractError if the table contains dates that Debezium's snapshot would change.

    The snapshot turns dates before the year 1 into later ones, and moves dates in the gap between the Julian and the
    Gregorian calendar (1582-10-05 to 1582-10-14) by ten days.
    """
    pipeline = table.pipeline
    schema = pipeline.spec.source.schema_
    omitted = {column.name for column in omitted_columns(table, postgres, postgres.columns(schema, table.name))}
    found = [name for name in postgres.unsupported_dates(schema, table.name) if name not in omitted]
    if found:
        raise ContractError(
            f"Cannot take a snapshot of table {table.source_table}: it has dates before the year 1, or from 1582-10-05 "
            f"to 1582-10-14, in {', '.join(found)}, and Debezium's snapshot would change them. Set these values to "
            "NULL, run this again, and restore the values after the snapshot: streamed changes are correct."
        )


def require_incremental(table: PipelineTable, postgres: SourcePostgres) -> None:
    """Raise ContractError if Debezium would mix up values of the table during an incremental snapshot.

    The snapshot replaces Debezium's schema of the table with one that lacks generated columns. A connector that resumes
    the snapshot after a restart has another schema, with columns that the SELECT omits. Values are then read from the
    wrong positions (docs/decisions/0049-omitted-columns.md).
    """
    source = table.pipeline.spec.source
    columns = postgres.columns(source.schema_, table.name)
    omitted = {column.name for column in omitted_columns(table, postgres, columns)}
    if unsafe := [column.name for column in columns if column.generated or column.name in omitted]:
        raise ContractError(
            f"Cannot take an incremental snapshot of table {table.source_table}: its column {unsafe[0]} is generated "
            "or omitted, and Debezium would mix up the values of columns. Run `cdc-lake resnapshot "
            f"{table.pipeline.name}`, which reads all tables again."
        )


def _column(column: ColumnInfo, catalog: TableCatalog) -> captured_schema.Column:
    return captured_schema.Column(
        name=column.name,
        type=column.resolved_type or column.type_name,
        nullable=column.nullable,
        kind=column.element_kind,
        attnum=column.position,
        missing=catalog.missing.get(column.name),
    )


def _require_known_defaults(
    table: PipelineTable,
    postgres: SourcePostgres,
    old: captured_schema.TableSchema,
    seen: captured_schema.TableSchema,
    columns: Sequence[ColumnInfo] | None,
) -> None:
    """Raise SchemaChangeError if the value of a new column in older rows is not known; `columns` is None for a query.

    The value is not known in three cases: the columns are those of a query; the table was rewritten, so that older rows
    have values that no event contains (for example a default that differs from row to row); or the default cannot be
    written as Debezium writes it.
    """
    before = evolution.match_columns(old, seen)
    if columns is None:
        if added := [column.name for column in seen.source_columns if column.name not in before]:
            fault = f"the rows that were polled before lack the new column {', '.join(added)} of {table.poll.sql}"
            raise evolution.schema_change_error(table.pipeline.name, table.source_table, [fault])
        return
    rewritten = seen.filenode is None or seen.filenode != old.filenode
    pipeline, name = table.pipeline, table.polled_table if table.pipeline.polled else table.name
    faults = []
    for column, info in zip(seen.source_columns, columns, strict=True):
        if column.name in before:
            continue
        if info.missing is not None and column.missing is None:
            faults.append(
                f"the default of the new column {column.name} {column.type} cannot be reproduced without a change event"
            )
        elif info.missing is None and rewritten and postgres.has_values(pipeline.spec.source.schema_, name, info.name):
            faults.append(f"the new column {column.name} was filled in a rewritten table, which writes no events")
    if faults:
        raise evolution.schema_change_error(pipeline.name, table.source_table, faults)
