"""The lake stage of a Parquet target: description and metadata. The work is in parquet_target/registering.py."""

from __future__ import annotations

from collections.abc import Sequence

import dagster as dg

from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.parquet_file import OWN_COLUMNS
from cdc_lake.contract.plurals import counted
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.parquet_target import raw_table
from cdc_lake.pipeline.parquet_target.registering import RegisterResult
from cdc_lake.pipeline.pipeline_table import PipelineTable
from resources.athena import Athena


def kinds(table: PipelineTable) -> set[str]:
    """Return the kinds of the asset."""
    return {table.landing.format, "s3", "athena"}


def description(table: PipelineTable) -> str:
    """Return the description of the asset."""
    objects = "JSON" if table.landing.format == "json" else "Parquet"
    return (
        f"Table {table.database}.{table.catalog_table}: all changes of {table.source_table}, in the landed {objects} "
        f"objects. Query {table.database}.{table.view} for the newest state of each row that is not deleted."
    )


def result(
    table: PipelineTable, batches: Sequence[RegisterResult], athena: Athena, bucket: str
) -> dg.MaterializeResult[None]:
    """Return the metadata of registrations, oldest first and at least one: their sums, and the state after the last."""
    last = batches[-1]
    registered, schema = last.registration, last.schema.schema
    columns = raw_table.columns(table, schema)
    names = [name for name, _ in columns if name not in OWN_COLUMNS]
    new = [manifest for batch in batches for manifest in batch.new]
    objects = [item for manifest in new for item in manifest.objects]
    changes = [
        *(text for batch in batches for text in batch.schema.changes),
        *([f"{counted(len(objects), 'object')} of {counted(len(new), 'manifest')} registered"] if new else []),
        *(["catalog updated"] if any(batch.changed for batch in batches) else []),
    ]
    return dg.MaterializeResult(
        asset_key=table.key("lake"),
        metadata={
            "dagster/column_schema": standard_metadata.schema(columns),
            "dagster/column_lineage": standard_metadata.lake_lineage(table.key("raw"), names),
            "dagster/uri": f"s3://{bucket}/{object_names.topic_prefix(table.pipeline.name, table.topic)}",
            "schema_version": schema.version,
            "instant": "none" if registered is None else registered.instant,
            **standard_metadata.watermark(None if registered is None else registered.checkpoint.watermark),
            **standard_metadata.values(
                {
                    "changes": standard_metadata.changes(changes),
                    "events": sum(item.records for item in objects),
                    "bytes": sum(item.bytes for item in objects),
                    "files": len(objects),
                }
            ),
            **standard_metadata.athena_usage(athena),
        },
    )
