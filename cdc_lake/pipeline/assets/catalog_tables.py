"""Register a lake table in the catalog: the Hudi table, its partitions if it has any, and the view for readers."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial

from cdc_lake.contract import failpoints
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import timeline
from cdc_lake.pipeline.pipeline_table import PipelineTable
from resources.athena import Athena
from resources.glue.catalog import GlueCatalog, GlueColumn, TableDefinition, hudi_table, merge_on_read

_VIEW = "cdc_lake.view"
_PARTITIONS = "cdc_lake.partitions"  # the newest commit whose partitions are in the catalog
_PARTITION_FILE = "/.hoodie_partition_metadata"  # Hudi writes one to the folder of each partition


def register(
    table: PipelineTable,
    columns: Sequence[tuple[str, str]],
    glue: GlueCatalog,
    athena: Athena,
    bucket: ObjectStore,
    uri: str,
    commit: timeline.Commit | None,
) -> bool:
    """Create or update tables, partitions and view in the catalog; return whether anything changed.

    `columns` are the lake table's column names and Hive types, `uri` is its location in `bucket`, and
    `commit` its newest commit.
    """
    catalog = table.database
    names = ", ".join(_selected(table, *column) for column in columns if column[0] != "__deleted")
    view = (
        f'CREATE OR REPLACE VIEW "{catalog}"."{table.view}" AS '  # noqa: S608 - checked identifiers
        f'SELECT {names} FROM "{catalog}"."{table.catalog_table}" WHERE NOT "__deleted"'
    )
    base_files, *merged = definitions(table, columns, uri)
    # The view's digest is stored in the table's parameters after the view was created: if this run is interrupted in
    # between, the next run creates the view.
    text = f"{view} -- {[kind for _, kind in columns]}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    desired = replace(base_files, parameters={**base_files.parameters, _VIEW: digest})
    changed = _put(desired, glue, bucket, table, commit, before=base_files, view=partial(athena.execute, view))
    for definition in merged:
        changed = _put(definition, glue, bucket, table, commit) or changed
    return changed


def _put(
    desired: TableDefinition,
    glue: GlueCatalog,
    bucket: ObjectStore,
    table: PipelineTable,
    commit: timeline.Commit | None,
    *,
    before: TableDefinition | None = None,
    view: Callable[[], object] | None = None,
) -> bool:
    """Create or update a table of the catalog with its partitions, and create `view` if the table changes.

    `before` is the definition that the table has until the view is created. Returns whether anything changed.
    """
    present = glue.get_table(desired.database, desired.name)
    registered_to = None if present is None else present.parameters.get(_PARTITIONS)
    if present is not None:
        parameters = {name: value for name, value in present.parameters.items() if name != _PARTITIONS}
        present = replace(present, parameters=parameters)
    changed = present != desired or (view is not None and glue.get_table(desired.database, table.view) is None)
    if changed:
        glue.ensure_database(desired.database)
        if before is not None and view is not None:
            glue.put_table(before)
            failpoints.reached("lake.before_view")
            view()
        glue.put_table(desired)
    if not table.spec.partition_by:
        return changed
    if changed:
        registered_to = None  # the table may have been re-created without its partitions
    return _register_partitions(table, desired, glue, bucket, registered_to, commit) or changed


def _selected(table: PipelineTable, name: str, kind: str) -> str:
    r"""Return the view's expression for a column.

    Trino's reader of Hudi tables returns '\N' for NULL in a partition column, which Athena and Spark read as NULL.
    """
    quoted = f'"{name}"'
    if name in table.spec.partition_by and kind == "string":
        return rf"NULLIF({quoted}, '\N') AS {quoted}"
    return quoted


def _register_partitions(
    table: PipelineTable,
    desired: TableDefinition,
    glue: GlueCatalog,
    bucket: ObjectStore,
    since: str | None,
    commit: timeline.Commit | None,
) -> bool:
    """Register the partitions of the commits after `since`, or of all commits if it is None; return whether any is new.

    The newest commit is then stored in the table's parameters, so that the next run reads only newer commits.
    """
    if commit is not None and commit.instant == since:
        return False
    found = None if since is None else timeline.partitions_after(bucket, table.lake_prefix, since)
    if found is None:
        # The commit was read before this listing: the next run registers a partition that is created in between.
        found = set(_partitions(table, bucket)), "" if commit is None else commit.instant
    folders, newest = found
    created = glue.put_partitions(desired, folders) if folders else 0
    if newest != since:
        glue.put_table(replace(desired, parameters={**desired.parameters, _PARTITIONS: newest}))
    return created > 0


def definitions(table: PipelineTable, columns: Sequence[tuple[str, str]], uri: str) -> tuple[TableDefinition, ...]:
    """Return the table's definitions for the catalog, without the digest of its view.

    A merge-on-read table has two definitions: one of its base files, which Athena and Trino read, and one of base and
    log files.
    """
    types = dict(columns)
    keys = table.spec.partition_by
    hudi = hudi_table(
        database=table.database,
        name=table.name,
        location=uri,
        columns=[GlueColumn(name, kind) for name, kind in columns if name not in keys],
        partition_keys=[GlueColumn(name, types[name]) for name in keys],
    )
    return merge_on_read(hudi) if table.is_merge_on_read else (hudi,)


def _partitions(table: PipelineTable, bucket: ObjectStore) -> Iterator[str]:
    """Yield the folder of each partition, relative to the table's folder: `a=1/b=2`."""
    for item in bucket.scan(table.lake_prefix):
        if item.key.endswith(_PARTITION_FILE):
            yield item.key.removeprefix(table.lake_prefix).removesuffix(_PARTITION_FILE)
