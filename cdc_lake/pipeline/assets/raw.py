"""The raw stage: land new records of the topic as objects and manifests in the bucket."""

from collections.abc import Sequence

import dagster as dg

from cdc_lake.contract.objects import object_names
from cdc_lake.contract.plurals import counted
from cdc_lake.contract.schema import captured_schema
from cdc_lake.contract.schema.sent_columns import sent_columns
from cdc_lake.jobs.adoption.adopt import AdoptReport
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.assets.parallel_tables import TableThreads
from cdc_lake.pipeline.automation import step_priority
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.operations import land_and_apply
from cdc_lake.pipeline.operations.land_and_apply import LandResult
from cdc_lake.pipeline.pipeline import SPARK_POOL, SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import stream_continuity
from cdc_lake.pipeline.spark_jobs.job_runs import JobRuns, warm_spark
from cdc_lake.pipeline.spark_jobs.small_landings import SmallLandings
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres
from resources.spark.job_interface import SparkJobs


def build(table: PipelineTable) -> dg.AssetsDefinition:
    """Return the raw asset of a table."""
    pipeline = table.pipeline

    @dg.asset(
        key=table.key("raw"),
        deps=[table.key("topic")],
        description=f"The records of {table.topic}, in objects that are named by offset and committed by manifests.",
        # Dagster has no icon for Avro.
        kinds={"s3", "pyspark", *({table.landing.format} & {"json", "parquet"})},
        group_name=pipeline.name,
        owners=pipeline.spec.owners,
        tags=table.tags("raw"),
        pool=SPARK_POOL,
        op_tags=step_priority.RAW,
        freshness_policy=pipeline.freshness_policy,
    )
    def raw_asset(
        context: dg.AssetExecutionContext,
        postgres: Postgres,
        kafka: Kafka,
        store: ObjectStore,
        spark: dg.ResourceParam[SparkJobs],
        table_threads: dg.ResourceParam[TableThreads],
    ) -> dg.MaterializeResult[None]:
        warm_spark(context, table, spark)

        def work(each: PipelineTable) -> list[dg.MaterializeResult[None]]:
            jobs = JobRuns(spark, table_threads.stopped)
            source = pipeline.source_postgres(postgres)
            landed = land(each, source, kafka, store, jobs, f"dagster run {context.run.run_id}")
            return [result(each, [landed], store, jobs)]

        return table_threads.materialise(context, table, "raw", pipeline.tables, work, spark)

    return raw_asset


def land(
    table: PipelineTable,
    postgres: SourcePostgres,
    kafka: Kafka,
    store: ObjectStore,
    jobs: JobRuns,
    owner: str,
    *,
    new_records: bool = False,
) -> LandResult:
    """Land the table's new records if the stream has no gap; `new_records` as in land_and_apply.land().

    Few records are landed in this process. Raises the errors of stream_continuity and of the job.
    """
    where, run = location(store), SmallLandings(jobs, kafka).run
    stream_continuity.require_no_gap(table.pipeline, kafka, where.store())
    return land_and_apply.land(table, postgres, kafka, where, run, owner, new_records=new_records)


def result(
    table: PipelineTable, landings: Sequence[LandResult], store: ObjectStore, jobs: JobRuns
) -> dg.MaterializeResult[None]:
    """Return the metadata of landings, oldest first and at least one: their sums, and the state after the last one."""
    pipeline, bucket, last = table.pipeline, location(store).store(), landings[-1]
    chain, state = last.input.chain, last.input.state
    head = chain.head(last.input.spec.head)
    captured = captured_schema.latest(bucket, pipeline.name, table.source_table)
    return dg.MaterializeResult(
        asset_key=table.key("raw"),
        metadata={
            "dagster/row_count": 0 if head is None else chain.count_records(head),
            "dagster/column_schema": standard_metadata.event_schema((c.name, c.type) for c in captured.columns),
            "dagster/column_lineage": standard_metadata.renaming_lineage(
                table.key("topic"),
                {each.lake.name: each.sent.name for each in sent_columns(captured.columns, table.landing_transforms)}
                | {name: name for name in captured_schema.EVENT_FIELDS},
            ),
            "dagster/uri": f"s3://{store.bucket}/{object_names.topic_prefix(pipeline.name, table.topic)}",
            "manifest": 0 if head is None else head.number,
            "topic_id": state.topic_id,
            **standard_metadata.watermark(table_progress.raw_watermark(bucket, table, state)),
            **standard_metadata.values(_changes(landings)),
            **jobs.metadata(),
        },
    )


def _changes(landings: Sequence[LandResult]) -> dict[str, str | int | float]:
    reports = [landed.report for landed in landings if landed.report is not None]
    # A report has no manifest if another run landed the job's records in the meantime.
    manifests = [report.manifest for report in reports if report.manifest is not None]
    names = ("records", "objects", "bytes", "dead_letters", "seconds")
    sums = {name: sum(getattr(report, name) for report in reports) for name in names}
    found: dict[str, str | int | float] = {"changes": standard_metadata.UNCHANGED, **sums}
    gaps = [gap for report in reports if isinstance(report, AdoptReport) for gap in report.gaps]
    if gaps:
        found["waiting"] = "; ".join(gaps)
    if manifests:
        which = f"manifest {manifests[0]}" if len(manifests) == 1 else f"manifests {manifests[0]} to {manifests[-1]}"
        found["changes"] = f"{which}: {counted(sums['records'], 'record')} in {counted(sums['objects'], 'object')}"
    return found
