"""Capture the columns of a source table, and store a change as a new schema version.

The source asset captures them when it is materialised, and the lake asset before it applies landed records, so that a
schema version exists for all records that are applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cdc_lake.contract.errors import ContractError, UnsupportedTypeError
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.schema import captured_schema, evolution
from cdc_lake.pipeline.naming import TableFlow
from resources.postgres.resource import Postgres
from resources.postgres.table_columns import ColumnInfo, TableCatalog


@dataclass(frozen=True)
class Look:
    """The newest schema, whether this call captured it, and the changes, one phrase per column."""

    schema: captured_schema.TableSchema
    added: bool
    told: Sequence[str]


def look(table: TableFlow, postgres: Postgres, bucket: ObjectStore, *, epoch: int = 0) -> Look:
    """Capture the source table's schema if it changed.

    `epoch` is that of the records that follow. A resnapshot passes the epoch that it begins: then every change can be
    applied, because all rows are read again. Raises ContractError if the key differs from the YAML's and for a table
    whose rows are in other tables, UnsupportedTypeError, and SchemaChangeError for a change that needs a resnapshot.
    """
    flow = table.pipeline
    catalog = flow.at_source(postgres).catalog(flow.spec.source.schema_, table.name)
    if set(catalog.key) != set(table.spec.key):
        raise ContractError(
            f"table {table.source_table} has primary key ({', '.join(catalog.key) or 'none'}), but the YAML of "
            f"{flow.name} says key: [{', '.join(table.spec.key)}]; make them the same"
        )
    if catalog.deferrable:
        raise ContractError(
            f"the primary key of table {table.source_table} is DEFERRABLE: a row may take a key that another one is "
            "just leaving, and the order of changes can't tell that from a delete; make it NOT DEFERRABLE"
        )
    columns = {column.name.lower() for column in catalog.columns}
    if lacking := [name for name in table.spec.partition_by if name.lower() not in columns]:
        raise ContractError(
            f"table {table.source_table} has no column {', '.join(lacking)}, by which the YAML of {flow.name} "
            "partitions its lake table (partition_by): name columns that it has. Where one was renamed or dropped, "
            f"name another one, then `cdc-lake reset {flow.name}`, since stored rows do not move"
        )
    if catalog.children or catalog.storage.filenode is None:
        raise ContractError(
            f"rows of table {table.source_table} stand in other tables ({', '.join(catalog.children) or 'none yet'}): "
            "partitions and tables that inherit come and go without an event for their rows, so that the lake would "
            "miss them. Capture each of them as a table of its own"
        )
    if catalog.row_security:
        raise ContractError(
            f"row-level security hides rows of table {table.source_table} from user {postgres.login().user}: a "
            "snapshot would leave them out, and nobody could tell. Give the user BYPASSRLS, make it the table's owner, "
            "or, where the owner is subject to the policies too, ALTER TABLE … NO FORCE ROW LEVEL SECURITY"
        )
    _require_published(table, postgres, catalog)
    seen = captured_schema.TableSchema(
        version=0,
        table=table.source_table,
        columns=tuple(_column(column, catalog) for column in catalog.columns),
        key=catalog.key,
        oid=catalog.storage.oid,
        filenode=catalog.storage.filenode,
        epoch=epoch,
    )
    found = captured_schema.versions(bucket, flow.name, table.source_table)
    if found and max(epoch, found[-1].epoch) == found[-1].epoch:
        _require_told(table, postgres, found[-1], seen, catalog)
    captured, added = captured_schema.record(bucket, flow.name, seen)
    return Look(captured, added, evolution.describe_changes(found[-1], captured) if found and added else ())


def require_tellable(table: TableFlow, postgres: Postgres) -> None:
    """Check before a snapshot that it will report all values correctly.

    Raises ContractError for dates that Debezium's snapshot changes: those before the year 1 become dates after it, and
    those between the Julian and the Gregorian calendar are moved by ten days.
    """
    flow = table.pipeline
    found = flow.at_source(postgres).untellable_dates(flow.spec.source.schema_, table.name)
    if found:
        raise ContractError(
            f"table {table.source_table} has days before the year 1, or from 1582-10-05 to 1582-10-14, in "
            f"{', '.join(found)}: Debezium's snapshot would tell others. Set these values to NULL until the "
            "snapshot is through, and back to what they were after it (a change is told rightly); then run this again"
        )


def _require_published(table: TableFlow, postgres: Postgres, catalog: TableCatalog) -> None:
    """Check that the publication has every column of the table.

    Raises UnsupportedTypeError for generated columns that it lacks: Debezium's own schema of the table has them, and
    where Debezium uses that schema, the values of later columns are shifted by one.
    """
    flow = table.pipeline
    generated = [column for column in catalog.columns if column.generated]
    publication = flow.spec.source.publication
    if generated and not flow.at_source(postgres).publishes_generated(publication):
        lacking = generated
    else:
        lacking = [column for column in generated if column.virtual]
    if lacking:
        raise UnsupportedTypeError(
            f"column {lacking[0].name} of {table.source_table} is generated, and publication {publication} leaves it "
            "out: let a trigger fill it, or drop it; a stored one can be published from PostgreSQL 18 on (CREATE or "
            f"ALTER PUBLICATION {publication} … publish_generated_columns = stored)"
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


def _require_told(
    table: TableFlow,
    postgres: Postgres,
    old: captured_schema.TableSchema,
    seen: captured_schema.TableSchema,
    catalog: TableCatalog,
) -> None:
    """Check that the catalog has the value of each new column in older rows.

    Raises SchemaChangeError otherwise: the table was rewritten, so that older rows have values that no event contains
    (for example by a default that differs from row to row), or the default cannot be written as Debezium writes it.
    """
    before = evolution.match_columns(old, seen)
    rewritten = seen.filenode is None or seen.filenode != old.filenode
    flow = table.pipeline
    faults = []
    for column, info in zip(seen.columns, catalog.columns, strict=True):
        if column.name in before:
            continue
        if info.missing is not None and column.missing is None:
            faults.append(f"the default of the new column {column.name} {column.type} can't be told without an event")
        elif (
            info.missing is None
            and rewritten
            and flow.at_source(postgres).has_values(flow.spec.source.schema_, table.name, column.name)
        ):
            faults.append(f"the new column {column.name} was filled in a rewritten table, which writes no events")
    if faults:
        raise evolution.schema_change_error(flow.name, table.source_table, faults)
