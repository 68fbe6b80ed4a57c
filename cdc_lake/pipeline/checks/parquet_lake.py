"""Checks of a Parquet target's table: its entries in the catalog, and its objects."""

from collections.abc import Mapping
from itertools import takewhile

import dagster as dg

from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.object_names import ObjectName, topic_prefix
from cdc_lake.contract.objects.store import ObjectStore as Bucket
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.table import registration
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.automation import step_priority
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import tiers
from cdc_lake.pipeline.parquet_target import raw_table
from cdc_lake.pipeline.pipeline_table import PipelineTable
from resources.glue.catalog import GlueCatalog
from resources.object_store import ObjectStore

_MAX_SHOWN = 10


def build(table: PipelineTable) -> list[dg.AssetChecksDefinition]:
    """Return the checks of the lake asset that Hudi tables do not have."""

    @dg.asset_check(
        asset=table.key("lake"),
        description=f"{table.database}.{table.catalog_table} has the columns of the newest captured schema, and "
        f"{table.view} exists.",
        op_tags=step_priority.LAKE,
    )
    def columns_registered(store: ObjectStore, glue: GlueCatalog) -> dg.AssetCheckResult:
        schema = captured_schema.latest(location(store).store(), table.pipeline.name, table.source_table)
        expected = [name for name, _ in raw_table.columns(table, schema)]
        found = glue.get_table(table.database, table.catalog_table)
        actual = [] if found is None else [each.name for each in (*found.columns, *found.partition_keys)]
        view = glue.get_table(table.database, table.view) is not None
        return dg.AssetCheckResult(
            passed=actual == expected and view,
            metadata={
                "missing_columns": dg.MetadataValue.json(sorted(set(expected) - set(actual))),
                "other_columns": dg.MetadataValue.json(sorted(set(actual) - set(expected))),
                "view": view,
            },
        )

    @dg.asset_check(
        asset=table.key("lake"),
        description=f"Every object that {table.database}.{table.catalog_table} reads is listed in a manifest. The next "
        "landing deletes objects after the newest manifest, which a killed landing left. A landing that was paused and "
        "lost its lease can leave earlier ones: no manifest will list them, so they can be deleted.",
        metadata=tiers.DAILY,
        op_tags=step_priority.LAKE,
    )
    def objects_listed(store: ObjectStore) -> dg.AssetCheckResult:
        bucket = location(store).store()
        extra = unlisted(bucket, table)
        return dg.AssetCheckResult(
            passed=not extra,
            severity=dg.AssetCheckSeverity.WARN,  # the view omits repeated rows
            metadata={
                "unlisted_objects": len(extra),
                "first": dg.MetadataValue.json(list(extra)[:_MAX_SHOWN]),
                "can_be_deleted": dg.MetadataValue.json([key for key, committed in extra.items() if committed]),
            },
        )

    @dg.asset_check(
        asset=table.key("lake"),
        description=f"{table.database}.{table.catalog_table} has the partitions of all registered objects. If one was "
        f"deleted, queries lack its rows: delete the table from the catalog, and materialise {table.asset('lake')}, "
        "which creates it with all partitions. The objects stay.",
        metadata=tiers.DAILY,
        op_tags=step_priority.LAKE,
    )
    def partitions_registered(store: ObjectStore, glue: GlueCatalog) -> dg.AssetCheckResult:
        missing = missing_partitions(location(store).store(), table, glue)
        return dg.AssetCheckResult(
            passed=not missing,
            metadata={
                "missing_partitions": len(missing),
                "first": dg.MetadataValue.json(missing[:_MAX_SHOWN]),
            },
        )

    return [columns_registered, objects_listed, partitions_registered]


def missing_partitions(bucket: Bucket, table: PipelineTable, glue: GlueCatalog) -> list[str]:
    """Return the partitions of registered objects that the catalog's table lacks, sorted, as folders `a=1/b=2`."""
    # Read the registration before the manifests, so that one that is landed in the meantime is not expected.
    last = registration.load(bucket, table.pipeline.name, table.lake_table)
    end = 0 if last is None else last.checkpoint.manifest
    registered = takewhile(lambda manifest: manifest.number <= end, table_progress.manifests(bucket, table))
    return raw_table.missing_partitions(table, registered, glue)


def unlisted(bucket: Bucket, table: PipelineTable) -> Mapping[str, bool]:
    """Return the keys of the topic's raw objects that no manifest of the chain lists.

    The value is true if manifests have committed the object's offsets, so that no later manifest can list it.
    """
    # List the objects before the manifests, so that an object that is landed in the meantime is not reported.
    prefix = topic_prefix(table.pipeline.name, table.topic)
    found = [name for item in bucket.scan(prefix) if (name := ObjectName.parse(item.key)) is not None]
    listed: set[str] = set()
    head = None
    for head in table_progress.manifests(bucket, table):
        listed.update(item.key for item in head.objects)
    return {name.key: _is_before_the_end(name, head) for name in found if name.key not in listed}


def _is_before_the_end(name: ObjectName, head: Manifest | None) -> bool:
    if head is None or (name.chain == head.chain and name.epoch > head.epoch):
        return False
    if (name.chain, name.epoch) != (head.chain, head.epoch):
        return True  # only objects of the current chain and epoch can be listed
    return name.first < head.next_offsets().get(name.partition, 0)
