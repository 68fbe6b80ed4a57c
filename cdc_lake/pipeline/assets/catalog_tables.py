"""Register a lake table in the catalog: the Hudi table, its partitions if it has any, and the view for readers."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cdc_lake.contract import failpoints
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import timeline
from cdc_lake.pipeline.naming import TableFlow
from resources.athena import Athena
from resources.glue.catalog import GlueCatalog, GlueColumn, TableDefinition, hudi_table

_VIEW = "cdc_lake.view"
_PARTITIONS = "cdc_lake.partitions"  # the newest commit whose partitions are in the catalog
_PARTITION_FILE = "/.hoodie_partition_metadata"  # Hudi writes one into every partition's folder


def register(
    table: TableFlow,
    columns: Sequence[tuple[str, str]],
    glue: GlueCatalog,
    athena: Athena,
    bucket: ObjectStore,
    uri: str,
) -> bool:
    """Create or update table, partitions and view in the catalog; return whether anything changed.

    `columns` are the lake table's column names and Hive types, `uri` is its location in `bucket`.
    """
    catalog = table.pipeline.spec.catalog
    names = ", ".join(f'"{name}"' for name, _ in columns if name != "__deleted")
    view = (
        f'CREATE OR REPLACE VIEW "{catalog}"."{table.view}" AS '  # noqa: S608 - checked identifiers
        f'SELECT {names} FROM "{catalog}"."{table.name}" WHERE NOT "__deleted"'
    )
    without_digest = definition(table, columns, uri)
    # The view's digest is stored in the table's parameters after the view was created: if this run is interrupted in
    # between, the next run creates the view.
    text = f"{view} -- {[kind for _, kind in columns]}"
    digest = hashlib.sha256(text.encode()).hexdigest()[:16]
    desired = replace(without_digest, parameters={**without_digest.parameters, _VIEW: digest})
    present = glue.get_table(catalog, table.name)
    registered_to = None if present is None else present.parameters.get(_PARTITIONS)
    if present is not None:
        parameters = {name: value for name, value in present.parameters.items() if name != _PARTITIONS}
        present = replace(present, parameters=parameters)
    changed = present != desired or glue.get_table(catalog, table.view) is None
    if changed:
        glue.ensure_database(catalog)
        glue.put_table(without_digest)
        failpoints.reached("lake.before_view")
        athena.execute(view)
        glue.put_table(desired)
    if not table.spec.partition_by:
        return changed
    if changed:
        registered_to = None  # the table may have been re-created without its partitions
    return _register_partitions(table, desired, glue, bucket, registered_to) or changed


def _register_partitions(
    table: TableFlow, desired: TableDefinition, glue: GlueCatalog, bucket: ObjectStore, since: str | None
) -> bool:
    """Register the partitions of the commits after `since`, or of all commits if it is None; return whether any is new.

    The newest commit is then stored in the table's parameters, so that the next run reads only newer commits.
    """
    found = None if since is None else timeline.partitions_after(bucket, table.lake_prefix, since)
    if found is None:
        # Read the commit before listing: the next run registers a partition that is created in between.
        commit = timeline.last_commit(bucket, table.lake_prefix)
        found = set(_partitions(table, bucket)), "" if commit is None else commit.instant
    folders, newest = found
    created = glue.put_partitions(desired, folders) if folders else 0
    if newest != since:
        glue.put_table(replace(desired, parameters={**desired.parameters, _PARTITIONS: newest}))
    return created > 0


def definition(table: TableFlow, columns: Sequence[tuple[str, str]], uri: str) -> TableDefinition:
    """Return the table's definition for the catalog, without the digest of its view."""
    kinds = dict(columns)
    keys = table.spec.partition_by
    return hudi_table(
        database=table.pipeline.spec.catalog,
        name=table.name,
        location=uri,
        columns=[GlueColumn(name, kind) for name, kind in columns if name not in keys],
        partition_keys=[GlueColumn(name, kinds[name]) for name in keys],
    )


def _partitions(table: TableFlow, bucket: ObjectStore) -> Iterator[str]:
    """Yield the folder of each partition, relative to the table's folder: `a=1/b=2`."""
    for item in bucket.scan(table.lake_prefix):
        if item.key.endswith(_PARTITION_FILE):
            yield item.key.removeprefix(table.lake_prefix).removesuffix(_PARTITION_FILE)
