"""lake: what is landed and not applied yet, folded into the Hudi table; table and view in the catalog."""

import dagster as dg

from cdc_lake.contract import schema, timeline
from cdc_lake.jobs import upsert
from cdc_lake.pipeline import registration, report, stream
from cdc_lake.pipeline.flow import RUNS_WITHIN, TableFlow, location
from resources.athena import Athena
from resources.glue import GlueCatalog
from resources.kafka import Kafka
from resources.object_store import ObjectStore
from resources.spark import LocalSpark


def build(table: TableFlow) -> dg.AssetsDefinition:
    """The lake asset of a table."""
    flow = table.pipeline
    catalog = flow.spec.catalog

    @dg.asset(
        key=table.key("lake"),
        deps=[table.key("raw")],
        description=(
            f"Hudi table {catalog}.{table.name}: the fold of all changes of {table.source_table}, one row a key. "
            f"Read it through {catalog}.{table.view}, which leaves out the rows that are deleted at the source."
        ),
        kinds={"hudi", "pyspark", "s3"},
        group_name=flow.name,
        owners=flow.spec.owners,
        freshness_policy=dg.FreshnessPolicy.time_window(RUNS_WITHIN),
        metadata={"dagster/table_name": f"{catalog}.{table.name}"},
        pool=f"lake_{flow.name}_{table.name}",
    )
    def lake_asset(
        context: dg.AssetExecutionContext,
        kafka: Kafka,
        store: ObjectStore,
        spark: LocalSpark,
        glue: GlueCatalog,
        athena: Athena,
    ) -> dg.MaterializeResult[None]:
        where = location(store)
        bucket = where.store()
        spec = table.upsert_spec(where, owner=f"dagster run {context.run.run_id}")
        changes: dict[str, str | int | float] = {"changes": report.UNCHANGED, "events": 0, "seconds": 0.0}
        if upsert.new_manifests(bucket, spec):
            done = spark.run(upsert.run, spec)
            changes = {
                "changes": f"commit {done.instant}: {done.events} events of {done.keys} keys",
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
        columns = schema.latest(bucket, flow.name, table.source_table).lake_columns()
        uri = f"s3://{store.bucket}/{table.lake_prefix.rstrip('/')}"
        registration.register(table, columns, glue, athena, bucket, uri)
        counted = athena.query(f'SELECT count(*), count_if("__deleted") FROM "{catalog}"."{table.name}"')  # noqa: S608
        rows, deleted = counted.rows[0]
        commit = timeline.last_commit(bucket, table.lake_prefix)
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": rows - deleted,
                "deleted_rows": deleted,
                "dagster/column_schema": report.schema(columns),
                "dagster/column_lineage": report.passed_on(table.key("raw"), (name for name, _ in columns)),
                "dagster/uri": f"s3://{store.bucket}/{table.lake_prefix}",
                "instant": "none" if commit is None else commit.instant,
                **report.watermark(stream.lake_watermark(bucket, table, stream.topic_state(kafka, table))),
                **report.facts(changes),
            }
        )

    return lake_asset
