"""A lake table in the catalog: the Hudi table, its partitions where it has any, and the view that readers use."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import replace

from cdc_lake.contract import failpoints
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import timeline
from cdc_lake.pipeline.naming import TableFlow
from resources.athena import Athena
from resources.glue import GlueCatalog, GlueColumn, TableDefinition, hudi_table

_VIEW = "cdc_lake.view"
_PARTITIONS = "cdc_lake.partitions"  # the newest commit whose partitions are in the catalog
_PARTITION = "/.hoodie_partition_metadata"  # Hudi puts one of these into every partition's folder


def register(
    table: TableFlow,
    columns: Sequence[tuple[str, str]],
    glue: GlueCatalog,
    athena: Athena,
    bucket: ObjectStore,
    uri: str,
) -> bool:
    """Put table, partitions and view into the catalog where they are missing or differ; whether that was so.

    `columns` are the lake table's names and Hive types, `uri` is where it lies in `bucket`.
    """
    catalog = table.pipeline.spec.catalog
    names = ", ".join(f'"{name}"' for name, _ in columns if name != "__deleted")
    view = (
        f'CREATE OR REPLACE VIEW "{catalog}"."{table.view}" AS '  # noqa: S608 - checked identifiers
        f'SELECT {names} FROM "{catalog}"."{table.name}" WHERE NOT "__deleted"'
    )
    bare = definition(table, columns, uri)
    # The view that was made last is noted at the table, after it was made: a run that is cut off in between is
    # followed by one that makes it.
    made = f"{view} -- {[kind for _, kind in columns]}"
    noted = replace(bare, parameters={**bare.parameters, _VIEW: hashlib.sha256(made.encode()).hexdigest()[:16]})
    present = glue.get_table(catalog, table.name)
    partitions_of = None if present is None else present.parameters.get(_PARTITIONS)
    if present is not None:
        left = {name: value for name, value in present.parameters.items() if name != _PARTITIONS}
        present = replace(present, parameters=left)
    changed = present != noted or glue.get_table(catalog, table.view) is None
    if changed:
        glue.ensure_database(catalog)
        glue.put_table(bare)
        failpoints.reached("lake.before_view")
        athena.execute(view)
        glue.put_table(noted)
    if not table.spec.partition_by:
        return changed
    if changed:
        partitions_of = None  # the table may have been made again, without its partitions
    return _register_partitions(table, noted, glue, bucket, partitions_of) or changed


def _register_partitions(
    table: TableFlow, noted: TableDefinition, glue: GlueCatalog, bucket: ObjectStore, since: str | None
) -> bool:
    """Put the partitions of the commits after `since` into the catalog; of all of them, without one.

    The newest of these commits is noted at the table then, so that the next run looks at what is newer only.
    """
    found = None if since is None else timeline.partitions_after(bucket, table.lake_prefix, since)
    if found is None:
        # The commit before the listing: a partition that comes in between is looked at again.
        commit = timeline.last_commit(bucket, table.lake_prefix)
        found = set(_partitions(table, bucket)), "" if commit is None else commit.instant
    folders, newest = found
    made = glue.put_partitions(noted, folders) if folders else 0
    if newest != since:
        glue.put_table(replace(noted, parameters={**noted.parameters, _PARTITIONS: newest}))
    return made > 0


def definition(table: TableFlow, columns: Sequence[tuple[str, str]], uri: str) -> TableDefinition:
    """The table as the catalog must have it, but for the note of its view."""
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
    """The folder of each partition below the table's own: `a=1/b=2`."""
    for item in bucket.scan(table.lake_prefix):
        if item.key.endswith(_PARTITION):
            yield item.key.removeprefix(table.lake_prefix).removesuffix(_PARTITION)
