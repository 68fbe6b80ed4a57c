"""The lake stage: apply landed records to the Hudi table, and register table and view in the catalog."""

from functools import partial

import dagster as dg

from cdc_lake.contract import failpoints
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.contract.table.timeline import Commit
from cdc_lake.jobs.apply.upsert import UpsertReport
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import catalog_tables, parallel_tables, standard_metadata
from cdc_lake.pipeline.assets.job_metadata import JobRuns
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import tiers
from cdc_lake.pipeline.naming import SPARK_POOL, SourcePostgres, TableFlow
from cdc_lake.pipeline.operations import land_and_apply, snapshot_sweep
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
    catalog = table.database

    @dg.asset(
        key=table.key("lake"),
        deps=[table.key("raw")],
        description=(
            f"Hudi table {catalog}.{table.name}: the newest state of each row of {table.source_table}, one row for "
            f"each key. {_readers(table)}"
        ),
        kinds={"hudi", "pyspark", "s3"},
        group_name=flow.name,
        owners=flow.spec.owners,
        tags=table.tags("lake"),
        pool=SPARK_POOL,
        op_tags=tiers.FIRST,
        freshness_policy=flow.freshness_policy,
        metadata={"dagster/table_name": f"{catalog}.{table.catalog_table}"},
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
        work = partial(
            _applied,
            postgres=flow.source_postgres(postgres),
            kafka=kafka,
            store=store,
            spark=spark,
            glue=glue,
            athena=athena,
            owner=f"dagster run {context.run.run_id}",
        )
        return parallel_tables.materialise(context, table, "lake", flow.lake_tables, work, spark)

    return lake_asset


def _applied(
    table: TableFlow,
    postgres: SourcePostgres,
    kafka: Kafka,
    store: ObjectStore,
    spark: SparkJobs,
    glue: GlueCatalog,
    athena: Athena,
    owner: str,
) -> dg.MaterializeResult[None]:
    """Apply the table's landed records and register it in the catalog; return the metadata of its lake asset."""
    where, jobs, athena = location(store), JobRuns(spark), athena.metered(table.database)
    bucket = where.store()
    Epochs(bucket, table.pipeline.name).require_whole()
    spec = table.upsert_spec(where, owner=owner)
    changes: dict[str, str | int | float] = {"changes": standard_metadata.UNCHANGED, "events": 0, "seconds": 0.0}
    applied = land_and_apply.apply(table, postgres, spec, jobs.run)
    schema, commit = applied.schema.schema, applied.commit
    if applied.report is not None and applied.report.commit is not None:
        changes = _changes(applied.report, applied.report.commit, applied.schema)
    applied_to = table_progress.applied_watermark(bucket, table, topic_state.now(kafka, table, bucket), commit)
    swept = snapshot_sweep.finish(table, bucket, spec, applied_to, commit, jobs.run)
    if swept is not None and swept.swept:
        commit = swept.commit
        changes["swept"] = swept.swept
        changes["changes"] = f"{changes['changes']}; {swept.swept} rows deleted that only an interrupted snapshot read"
    columns = schema.lake_columns()
    uri = f"s3://{store.bucket}/{table.lake_prefix.rstrip('/')}"
    failpoints.reached("lake.before_catalog")
    catalog_tables.register(table, columns, glue, athena, bucket, uri, commit)
    failpoints.reached("lake.after_catalog")
    counted = athena.query(f'SELECT count(*), count_if("__deleted") FROM {_quoted(table)}')  # noqa: S608
    rows, deleted = counted.rows[0]
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": rows - deleted,
            "deleted_rows": deleted,
            "dagster/column_schema": standard_metadata.schema(columns),
            "dagster/column_lineage": standard_metadata.lake_lineage(table.key("raw"), (name for name, _ in columns)),
            "dagster/uri": f"s3://{store.bucket}/{table.lake_prefix}",
            "schema_version": schema.version,
            "instant": "none" if commit is None else commit.instant,
            **standard_metadata.watermark(applied_to),
            **standard_metadata.values(changes),
            **standard_metadata.scanned(athena),
            **jobs.metadata(),
        }
    )


def _readers(table: TableFlow) -> str:
    """Return which tables of the catalog to query."""
    if table.target.table_type == "cow":
        return f"Query {table.database}.{table.view}, which leaves out the rows that are deleted at the source."
    return (
        f"Query {table.database}.{table.name}_rt for every commit, or {table.catalog_table} for the state of the last "
        f"compaction; {table.view} leaves out the rows that are deleted at the source."
    )


def _quoted(table: TableFlow) -> str:
    return f'"{table.database}"."{table.catalog_table}"'


def _changes(report: UpsertReport, commit: Commit, schema: schema_capture.Capture) -> dict[str, str | int | float]:
    """Return the metadata of a run that committed."""
    applied = [f"{report.events} events of {report.keys} keys"] if report.manifests else []
    summary = ", ".join([*(report.schema_changes or schema.changes), *applied])
    return {
        "changes": f"commit {commit.instant}: {summary}",
        **({"operation": report.operation} if report.operation else {}),
        "events": report.events,
        "keys": report.keys,
        "inserts": commit.inserts,
        "updates": commit.updates,
        "dead_letters": report.dead_letters,
        "bytes_written": commit.bytes_written,
        "files_written": commit.files_written,
        "write_amplification": commit.bytes_written / max(1, report.events),
        "seconds": report.seconds,
    }
