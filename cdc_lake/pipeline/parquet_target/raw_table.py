"""The catalog's entries of a Parquet target's table: the table of all changes, and the view of the latest rows.

A table that is landed as JSON is registered as JSON: its columns are the fields of the records, and the view converts
them (jobs/apply/json_rows_sql.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import ContractError, reset_advice
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.contract.objects.parquet_file import EPOCH, OWN_COLUMNS, PARTITION, RECORD
from cdc_lake.contract.schema.captured_schema import TableSchema
from cdc_lake.contract.table import latest_rows
from cdc_lake.contract.table.event_order import ORDER_COLUMN
from cdc_lake.jobs.apply import json_fields, json_rows_sql
from cdc_lake.jobs.landing.raw_formats import EXTENSIONS
from cdc_lake.pipeline.pipeline_table import PipelineTable
from resources.athena import Athena
from resources.glue.catalog import GlueCatalog, GlueColumn, external_table
from resources.glue.tables import partition_values

_FILE_FORMATS: Mapping[str, Literal["json", "parquet"]] = {"json": "json", "parquet": "parquet"}
"""The formats of landed objects that an external table can have."""
_VIEW = "cdc_lake.view"
_KEYS = (EPOCH, PARTITION)


def keys(table: PipelineTable) -> tuple[str, ...]:
    """Return the partition keys: the columns of landing.partition_by, epoch and partition."""
    return (*table.landing.partition_by, *_KEYS)


def columns(table: PipelineTable, schema: TableSchema) -> list[tuple[str, str]]:
    """Return the names and Hive types of the table's columns, the partition keys last."""
    lake = {name: kind for name, kind in schema.lake_columns() if name != ORDER_COLUMN}
    own = {name: kind for name, kind in OWN_COLUMNS.items() if name not in {*_KEYS, RECORD}}
    stored = dict(json_fields.fields(schema)) if table.landing.format == "json" else lake | own
    kinds = {name: kind for name, kind in stored.items() if name not in keys(table)}
    return [*kinds.items(), *((name, (lake | OWN_COLUMNS)[name]) for name in keys(table))]


def view_sql(table: PipelineTable, versions: Sequence[TableSchema], boundary: str) -> str:
    """Return the statement that creates the view of the latest rows, in Athena's SQL."""
    if table.landing.format == "json":
        relation = f'"{table.database}"."{table.catalog_table}"'
        select = json_rows_sql.latest_sql(
            versions, relation, boundary, table.values, "athena", table.landing.partition_by
        )
    else:
        relation = f"`{table.database}`.`{table.catalog_table}`"
        select = latest_rows.for_athena(latest_rows.sql(versions, relation, boundary))
    return f'CREATE OR REPLACE VIEW "{table.database}"."{table.view}" AS {select}'


def register(
    table: PipelineTable,
    versions: Sequence[TableSchema],
    boundary: str,
    bucket: str,
    new: Iterable[Manifest],
    whole: Iterable[Manifest],
    glue: GlueCatalog,
    athena: Athena,
) -> bool:
    """Create or update the table, its partitions and its view, in this order; return whether anything changed.

    The previous view remains valid while table and partitions have newer columns (latest_rows.sql()).
    `new` are the manifests whose partitions may be missing, `whole` all manifests, for a table that is created or has
    changed. Raises what latest_rows.sql() and the catalog raise.
    """
    kinds = columns(table, versions[-1])
    plain = external_table(
        database=table.database,
        name=table.catalog_table,
        location=f"s3://{bucket}/{object_names.topic_prefix(table.pipeline.name, table.topic).rstrip('/')}",
        file_format=_FILE_FORMATS[table.landing.format],
        columns=[GlueColumn(name, kind) for name, kind in kinds if name not in keys(table)],
        partition_keys=[GlueColumn(name, kind) for name, kind in kinds if name in keys(table)],
        comment=f"All changes of {table.source_table}; {table.view} has the latest rows",
    )
    view = view_sql(table, versions, boundary)
    # The digest includes the columns, because a view keeps the types that its table had when it was created. It is
    # stored after the view, so that a run after an interruption updates the partitions and creates the view again.
    digest = hashlib.sha256(f"{view} -- {kinds}".encode()).hexdigest()[:16]
    desired = replace(plain, parameters={**plain.parameters, _VIEW: digest})
    present = glue.get_table(table.database, table.catalog_table)
    same_columns = (
        present is not None and _VIEW in present.parameters and replace(present, parameters=plain.parameters) == plain
    )
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


def missing_partitions(table: PipelineTable, registered: Iterable[Manifest], glue: GlueCatalog) -> list[str]:
    """Return the partitions of registered manifests that the catalog's table lacks, sorted, as folders `a=1/b=2`.

    Raises what object_names_of() raises.
    """
    present = glue.partitions(table.database, table.catalog_table)
    expected = {folder for folder, _ in _partitions(table, "", registered)}
    return sorted(folder for folder in expected if tuple(partition_values(folder)) not in present)


def _partitions(table: PipelineTable, bucket: str, manifests: Iterable[Manifest]) -> Iterable[tuple[str, str]]:
    """Yield each partition that has objects, as `country=Peru/__epoch=0/__partition=0`, with its location.

    Raises what object_names_of() raises.
    """
    for manifest in manifests:
        for name in object_names_of(table, manifest):
            fields = "".join(f"{field}/" for field in name.fields)
            folder = f"{fields}{EPOCH}={name.epoch}/{PARTITION}={name.partition}"
            yield folder, f"s3://{bucket}/{name.prefix.rstrip('/')}"


def object_names_of(table: PipelineTable, manifest: Manifest) -> list[ObjectName]:
    """Return the names of a manifest's objects.

    Raises ContractError if an object does not have the format and the partition columns of the YAML.
    """
    expected = (EXTENSIONS[table.landing.format], tuple(table.landing.partition_by))
    found = []
    for item in manifest.objects:
        name = ObjectName.parse(item.key)
        if name is None or (name.extension, tuple(name.values())) != expected:
            raise ContractError(
                f"Cannot land and register table {table.name}: its raw objects have another format or other partition "
                f"columns than landing in the YAML of {table.pipeline.name} ({item.key}), and a catalog table reads "
                f"one kind. Restore the YAML, or {reset_advice(table.pipeline.name)}."
            )
        found.append(name)
    return found
