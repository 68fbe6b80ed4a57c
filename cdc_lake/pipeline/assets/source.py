"""The source stage: prepare a PostgreSQL table for capture.

Materialising it checks the key, stores the schema in the bucket, sets the replica identity, adds the trigger that
rejects TRUNCATE, creates the heartbeat and signal tables, and adds all three tables to the publication.
"""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from cdc_lake.contract import failpoints
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.automation import step_priority
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.pipeline import SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import omitted_columns, schema_capture, transformed_columns
from cdc_lake.pipeline.spark_jobs.job_runs import warm_spark
from cdc_lake.pipeline.spec.source import HEARTBEAT_TABLE
from resources.object_store import ObjectStore
from resources.postgres.internal_tables.heartbeat_table import HEARTBEAT
from resources.postgres.internal_tables.signal_table import signal_table
from resources.postgres.resource import Postgres
from resources.spark.job_interface import SparkJobs


def build(table: PipelineTable) -> dg.AssetsDefinition:
    """Return the source asset of a table."""
    pipeline = table.pipeline
    source = pipeline.spec.source

    @dg.asset(
        key=table.key("source"),
        description=f"Table {table.source_table} of database {source.database}, in publication {source.publication}.",
        kinds={"postgres", "table"},
        group_name=pipeline.name,
        owners=pipeline.spec.owners,
        tags=table.tags("source"),
        op_tags=step_priority.STREAM,
        freshness_policy=pipeline.freshness_policy,
        metadata={"dagster/table_name": f"{source.database}.{table.source_table}"},
    )
    def source_asset(
        context: dg.AssetExecutionContext, postgres: Postgres, store: ObjectStore, spark: dg.ResourceParam[SparkJobs]
    ) -> dg.MaterializeResult[None]:
        warm_spark(context, table, spark)
        database = pipeline.source_postgres(postgres)
        # Capture first: a table that cannot be captured (because of its key, a name or a type) must not be changed.
        failpoints.reached("source.before_schema")
        captured = schema_capture.capture(table, database, location(store).store())
        if automatic := [column for column in captured.schema.omitted if not column.excluded]:
            context.log.warning(
                f"{table.source_table}: these columns cannot be captured, and are not in the lake: "
                f"{omitted_columns.describe(automatic)}. Change the columns (docs/reference/types.md), or name them in "
                "exclude_columns to accept this."
            )
        if database.slot(pipeline.slot) is None:
            schema_capture.require_snapshot_safe_dates(table, database)
        failpoints.reached("source.after_schema")
        trigger_added = database.refuse_truncate(source.schema_, table.name)
        # With FULL, an UPDATE event also contains unchanged TOASTed values, and a DELETE event contains the last row.
        identity = omitted_columns.replica_identity(table, database)
        identity_changed = database.set_replica_identity(source.schema_, table.name, identity)
        internal_tables = (HEARTBEAT, signal_table(pipeline.signal_table))
        created = [each.name for each in internal_tables if database.ensure_internal_table(source.schema_, each)]
        publication = database.ensure_publication(
            source.publication,
            [(source.schema_, name) for name in (table.name, HEARTBEAT_TABLE, pipeline.signal_table)],
        )
        changes = [
            *([f"replica identity set to {identity}"] if identity_changed else []),
            *(["TRUNCATE is rejected from now on"] if trigger_added else []),
            *(f"{name} created" for name in created),
            *([f"publication {publication.action}"] if publication.action != "unchanged" else []),
        ]
        server = database.identity()
        return dg.MaterializeResult(
            metadata={
                **source_metadata(database, captured, database.row_count(source.schema_, table.name), changes),
                "wal_lsn": server.lsn,
                "system_identifier": server.system_identifier,
            }
        )

    return source_asset


def source_metadata(
    database: SourcePostgres, captured: schema_capture.Capture, rows: int, changes: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the metadata of a source asset, streamed or polled.

    `rows` is the table's row count; `changes` describes what the asset changed, besides the captured schema.
    """
    schema = captured.schema
    schema_changes = [*([f"schema version {schema.version} captured"] if captured.added else []), *captured.changes]
    transforms = transformed_columns.describe(schema)
    return {
        "dagster/row_count": rows,
        "dagster/column_schema": standard_metadata.schema(
            (each.source_name, each.type) for each in schema.source_columns
        ),
        "dagster/uri": f"postgresql://{database.host}:{database.port}/{database.database}",
        "changes": standard_metadata.changes([*changes, *schema_changes]),
        "schema_version": schema.version,
        **({"transforms": transforms} if transforms else {}),
        **({"omitted_columns": omitted_columns.describe(schema.omitted)} if schema.omitted else {}),
    }
