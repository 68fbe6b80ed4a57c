"""The catalog's entries of a Parquet target's table: the table of all changes, and the view of the latest rows."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import replace

import sqlglot

from cdc_lake.contract import failpoints
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.parquet_file import EPOCH, OWN_COLUMNS, PARTITION, RECORD
from cdc_lake.contract.schema.captured_schema import TableSchema
from cdc_lake.contract.table import latest_rows
from cdc_lake.contract.table.event_order import ORDER_COLUMN
from cdc_lake.pipeline.naming import TableFlow
from resources.athena import Athena
from resources.glue.catalog import GlueCatalog, GlueColumn, parquet_table

_VIEW = "cdc_lake.view"
KEYS = (EPOCH, PARTITION)


def columns(schema: TableSchema) -> list[tuple[str, str]]:
    """Return the names and Hive types of the table's columns, the partition keys last."""
    own = [(name, kind) for name, kind in OWN_COLUMNS.items() if name not in {*KEYS, RECORD}]
    lake = [(name, kind) for name, kind in schema.lake_columns() if name != ORDER_COLUMN]
    return [*lake, *own, *((name, OWN_COLUMNS[name]) for name in KEYS)]


def view_sql(table: TableFlow, versions: Sequence[TableSchema], boundary: str) -> str:
    """Return the statement that creates the view of the latest rows, in Athena's SQL."""
    select = latest_rows.sql(versions, f"`{table.database}`.`{table.catalog_table}`", boundary)
    [translated] = sqlglot.transpile(select, read="spark", write="trino")
    return f'CREATE OR REPLACE VIEW "{table.database}"."{table.view}" AS {translated}'


def register(
    table: TableFlow,
    versions: Sequence[TableSchema],
    boundary: str,
    bucket: str,
    new: Iterable[Manifest],
    whole: Iterable[Manifest],
    glue: GlueCatalog,
    athena: Athena,
) -> bool:
    """Create or update the table, its partitions and its view; return whether anything changed.

    `new` are the manifests whose partitions may be missing, `whole` all manifests, for a table that is created or has
    changed. Raises what latest_rows.sql() and the catalog raise.
    """
    kinds = columns(versions[-1])
    plain = parquet_table(
        database=table.database,
        name=table.catalog_table,
        location=f"s3://{bucket}/{object_names.topic_prefix(table.pipeline.name, table.topic).rstrip('/')}",
        columns=[GlueColumn(name, kind) for name, kind in kinds if name not in KEYS],
        partition_keys=[GlueColumn(name, kind) for name, kind in kinds if name in KEYS],
        comment=f"All changes of {table.source_table}; {table.view} has the latest rows",
    )
    view = view_sql(table, versions, boundary)
    # The digest includes the columns, because a view keeps the types that its table had when it was created. It is
    # stored after the view, so that a run after an interruption creates the view again.
    digest = hashlib.sha256(f"{view} -- {kinds}".encode()).hexdigest()[:16]
    desired = replace(plain, parameters={**plain.parameters, _VIEW: digest})
    present = glue.get_table(table.database, table.catalog_table)
    same_columns = present is not None and replace(present, parameters=plain.parameters) == plain
    has_view = glue.get_table(table.database, table.view) is not None
    changed = not same_columns or present != desired or not has_view
    if not same_columns:
        glue.ensure_database(table.database)
        glue.put_table(plain)
    found = dict(_partitions(table, bucket, new if same_columns else whole))
    created = glue.put_partitions(desired, found, update=not same_columns) if found else 0
    if changed:
        failpoints.reached("lake.before_view")
        athena.execute(view)
        glue.put_table(desired)
    return changed or created > 0


def _partitions(table: TableFlow, bucket: str, manifests: Iterable[Manifest]) -> Iterable[tuple[str, str]]:
    """Yield each partition that has objects, as `__epoch=0/__partition=0`, with its location."""
    for manifest in manifests:
        for number in {item.partition for item in manifest.objects}:
            prefix = object_names.partition_prefix(
                table.pipeline.name, table.topic, number, manifest.epoch, manifest.chain
            )
            yield f"{EPOCH}={manifest.epoch}/{PARTITION}={number}", f"s3://{bucket}/{prefix.rstrip('/')}"
