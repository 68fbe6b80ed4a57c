"""The source stage: prepare a PostgreSQL table for capture.

Materialising it checks the key, captures the schema beside the raw objects, sets the replica identity, adds the trigger
that rejects TRUNCATE, and adds the table and the heartbeat to the publication.
"""

import dagster as dg

from cdc_lake.contract import failpoints
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.assets.job_metadata import warm
from cdc_lake.pipeline.naming import TableFlow, location
from cdc_lake.pipeline.source_health import schema_capture
from cdc_lake.pipeline.spec import HEARTBEAT_TABLE
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres
from resources.spark.job_interface import SparkJobs


def build(table: TableFlow) -> dg.AssetsDefinition:
    """Return the source asset of a table."""
    flow = table.pipeline
    source = flow.spec.source

    @dg.asset(
        key=table.key("source"),
        description=f"Table {table.source_table} of database {source.database}, in publication {source.publication}.",
        kinds={"postgres", "table"},
        group_name=flow.name,
        owners=flow.spec.owners,
        tags=table.tags("source"),
        freshness_policy=flow.freshness_policy,
        metadata={"dagster/table_name": f"{source.database}.{table.source_table}"},
    )
    def source_asset(
        context: dg.AssetExecutionContext, postgres: Postgres, store: ObjectStore, spark: dg.ResourceParam[SparkJobs]
    ) -> dg.MaterializeResult[None]:
        warm(context, table, spark)
        postgres = flow.at_source(postgres)
        # First, so that a table that cannot be captured (its key, a name or a type) is not changed.
        failpoints.reached("source.before_schema")
        seen = schema_capture.look(table, postgres, location(store).store())
        if postgres.slot(flow.slot) is None:
            schema_capture.require_tellable(table, postgres)
        failpoints.reached("source.after_schema")
        truncate = postgres.refuse_truncate(source.schema_, table.name)
        # With FULL an UPDATE event contains unchanged TOASTed values too, and a DELETE event contains the last row.
        identity = postgres.set_replica_identity(source.schema_, table.name, "full")
        heartbeat = postgres.ensure_heartbeat(source.schema_)
        publication = postgres.ensure_publication(
            source.publication, [(source.schema_, table.name), (source.schema_, HEARTBEAT_TABLE)]
        )
        changes = [
            *(["replica identity set to full"] if identity else []),
            *(["TRUNCATE is rejected from now on"] if truncate else []),
            *([f"{HEARTBEAT_TABLE} created"] if heartbeat else []),
            *([f"publication {publication.action}"] if publication.action != "unchanged" else []),
            *([f"schema version {seen.schema.version} captured"] if seen.added else []),
            *seen.told,
        ]
        server = postgres.identity()
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": postgres.row_count(source.schema_, table.name),
                "dagster/column_schema": standard_metadata.schema(
                    (each.name, each.type) for each in seen.schema.columns
                ),
                "dagster/uri": f"postgresql://{postgres.host}:{postgres.port}/{source.database}",
                "changes": ", ".join(changes) or standard_metadata.UNCHANGED,
                "schema_version": seen.schema.version,
                "wal_lsn": server.lsn,
                "system_identifier": server.system_identifier,
            }
        )

    return source_asset
