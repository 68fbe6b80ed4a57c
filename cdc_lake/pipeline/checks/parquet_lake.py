"""Checks of a Parquet target's table: its entries in the catalog, and its objects."""

from collections.abc import Iterator

import dagster as dg

from cdc_lake.contract.objects.object_names import ObjectName, topic_prefix
from cdc_lake.contract.objects.store import ObjectStore as Bucket
from cdc_lake.contract.schema import captured_schema
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.automation import step_priority
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import tiers
from cdc_lake.pipeline.parquet_target import raw_table
from cdc_lake.pipeline.table_flow import TableFlow
from resources.glue.catalog import GlueCatalog
from resources.object_store import ObjectStore

_MAX_SHOWN = 10


def build(table: TableFlow) -> list[dg.AssetChecksDefinition]:
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
        "landing deletes objects that a killed landing left; one that lost its lease can leave others.",
        metadata=tiers.DAILY,
        op_tags=step_priority.LAKE,
    )
    def objects_listed(store: ObjectStore) -> dg.AssetCheckResult:
        bucket = location(store).store()
        extra = list(unlisted(bucket, table))
        return dg.AssetCheckResult(
            passed=not extra,
            severity=dg.AssetCheckSeverity.WARN,  # the view omits repeated rows
            metadata={"unlisted_objects": len(extra), "first": dg.MetadataValue.json(extra[:_MAX_SHOWN])},
        )

    return [columns_registered, objects_listed]


def unlisted(bucket: Bucket, table: TableFlow) -> Iterator[str]:
    """Yield the keys of the topic's raw objects that no manifest of the chain lists."""
    # List the objects before the manifests, so that an object that is landed in the meantime is not reported.
    prefix = topic_prefix(table.pipeline.name, table.topic)
    found = [item.key for item in bucket.scan(prefix) if ObjectName.parse(item.key) is not None]
    listed = {item.key for manifest in table_progress.manifests(bucket, table) for item in manifest.objects}
    return (key for key in found if key not in listed)
