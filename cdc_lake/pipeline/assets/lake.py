"""The lake stage: apply landed records to the Hudi table, and register table and view in the catalog."""

from dataclasses import replace

import dagster as dg

from cdc_lake.contract import failpoints
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.contract.table import timeline
from cdc_lake.jobs.apply import upsert
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import catalog_tables, standard_metadata
from cdc_lake.pipeline.assets.job_metadata import JobRuns
from cdc_lake.pipeline.checks import tiers
from cdc_lake.pipeline.naming import SPARK_POOL, TableFlow, location
from cdc_lake.pipeline.operations import snapshot_sweep
from cdc_lake.pipeline.source_health import schema_capture, topic_state
from resources.athena import Athena
from resources.glue.catalog import GlueCatalog
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres
from resources.spark.job_interface import SparkJobs


def build(table: TableFlow) -> dg.AssetsDefinition:
    """Return the lake asset of a table."""
    flow = table.pipeline
    catalog = flow.spec.catalog

    @dg.asset(
        key=table.key("lake"),
        deps=[table.key("raw")],
        description=(
            f"Hudi table {catalog}.{table.name}: the newest state of each row of {table.source_table}, one row for "
            f"each key. Query {catalog}.{table.view}, which leaves out the rows that are deleted at the source."
        ),
        kinds={"hudi", "pyspark", "s3"},
        group_name=flow.name,
        owners=flow.spec.owners,
        tags=table.tags("lake"),
        pool=SPARK_POOL,
        op_tags=tiers.FIRST,  # before the checks of raw that do not block it
        freshness_policy=flow.freshness_policy,
        metadata={"dagster/table_name": f"{catalog}.{table.name}"},
    )
    def lake_asset(
        context: dg.AssetExecutionContext,
        postgres: Postgres,
        kafka: Kafka,
        store: ObjectStore,
        spark: dg.ResourceParam[SparkJobs],
        glue: GlueCatalog,
        athena: Athena,
    ) -> dg.MaterializeResult[None]:
        where, jobs, athena = location(store), JobRuns(spark), athena.metered(catalog)
        bucket = where.store()
        Epochs(bucket, flow.name).require_whole()
        spec = table.upsert_spec(where, owner=f"dagster run {context.run.run_id}")
        changes: dict[str, str | int | float] = {"changes": standard_metadata.UNCHANGED, "events": 0, "seconds": 0.0}
        new = upsert.new_manifests(bucket, spec)
        # In this order: each landed record was written under the schema that is captured now, or under an earlier one.
        seen = schema_capture.look(table, postgres, bucket)
        if new or upsert.new_version(bucket, spec) is not None:
            done = jobs.run(upsert.run, replace(spec, until=new[-1].number if new else 0))
            applied = [f"{done.events} events of {done.keys} keys"] if new else []
            summary = ", ".join([*(done.schema_changes or seen.told), *applied])
            changes = {
                "changes": f"commit {done.instant}: {summary}" if done.instant else standard_metadata.UNCHANGED,
                "events": done.events,
                "keys": done.keys,
                "inserts": done.inserts,
                "updates": done.updates,
                "dead_letters": done.dead_letters,
                "bytes_written": done.bytes_written,
                "files_written": done.files_written,
                "write_amplification": done.bytes_written / max(1, done.events),
                "seconds": done.seconds,
            }
        applied_to = table_progress.lake_watermark(bucket, table, topic_state.now(kafka, table))
        swept = snapshot_sweep.finish(table, bucket, spec, applied_to, jobs.run)
        if swept:
            changes["swept"] = swept
            changes["changes"] = f"{changes['changes']}; {swept} rows deleted that only an interrupted snapshot read"
        columns = seen.schema.lake_columns()
        uri = f"s3://{store.bucket}/{table.lake_prefix.rstrip('/')}"
        failpoints.reached("lake.before_catalog")
        catalog_tables.register(table, columns, glue, athena, bucket, uri)
        failpoints.reached("lake.after_catalog")
        counted = athena.query(f'SELECT count(*), count_if("__deleted") FROM "{catalog}"."{table.name}"')  # noqa: S608
        rows, deleted = counted.rows[0]
        commit = timeline.last_commit(bucket, table.lake_prefix)
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": rows - deleted,
                "deleted_rows": deleted,
                "dagster/column_schema": standard_metadata.schema(columns),
                "dagster/column_lineage": standard_metadata.lake_lineage(
                    table.key("raw"), (name for name, _ in columns)
                ),
                "dagster/uri": f"s3://{store.bucket}/{table.lake_prefix}",
                "schema_version": seen.schema.version,
                "instant": "none" if commit is None else commit.instant,
                **standard_metadata.watermark(applied_to),
                **standard_metadata.values(changes),
                **standard_metadata.scanned(athena),
                **jobs.metadata(),
            }
        )

    return lake_asset
