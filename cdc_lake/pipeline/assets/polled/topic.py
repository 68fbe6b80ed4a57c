"""The topic stage of a polled table: send the rows that changed since the last poll."""

import dagster as dg

from cdc_lake.contract.plurals import counted
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.assets.parallel_tables import TableThreads
from cdc_lake.pipeline.assets.topic import topic_metadata
from cdc_lake.pipeline.automation import step_priority
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.operations import polling
from cdc_lake.pipeline.operations.polling import PollResult
from cdc_lake.pipeline.pipeline import SPARK_POOL
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import polled_source, topic_state
from cdc_lake.pipeline.spark_jobs.job_runs import JobRuns, warm_spark
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres
from resources.spark.job_interface import SparkJobs


def build(table: PipelineTable) -> dg.AssetsDefinition:
    """Return the topic asset of a polled table; each materialisation polls the table."""
    pipeline = table.pipeline

    @dg.asset(
        key=table.key("topic"),
        deps=[table.key("source")],
        description=(
            f"The rows of {table.poll.sql or table.polled_table} that changed, once for each poll. A row that changed "
            f"twice between two polls has one record, and a deleted row has none: {polled_source.delete_finder(table)} "
            "finds it."
        ),
        kinds={"kafka", "pyspark"},
        group_name=pipeline.name,
        owners=pipeline.spec.owners,
        tags=table.tags("topic"),
        pool=SPARK_POOL,
        op_tags=step_priority.STREAM,
        freshness_policy=pipeline.freshness_policy,
        metadata={"dagster/table_name": table.topic},
    )
    def topic_asset(
        context: dg.AssetExecutionContext,
        postgres: Postgres,
        kafka: Kafka,
        store: ObjectStore,
        spark: dg.ResourceParam[SparkJobs],
        table_threads: dg.ResourceParam[TableThreads],
    ) -> dg.MaterializeResult[None]:
        warm_spark(context, table, spark)

        def work(each: PipelineTable) -> list[dg.MaterializeResult[None]]:
            jobs, owner = JobRuns(spark, table_threads.stopped), f"dagster run {context.run.run_id}"
            systems = polling.PollSystems(pipeline.source_postgres(postgres), kafka, location(store), jobs.run, owner)
            return [_result(each, systems, polling.poll(each, systems), context.instance, jobs)]

        return table_threads.materialise(context, table, "topic", pipeline.tables, work, spark)

    return topic_asset


def _result(
    table: PipelineTable, systems: polling.PollSystems, polled: PollResult, instance: dg.DagsterInstance, jobs: JobRuns
) -> dg.MaterializeResult[None]:
    state = topic_state.current(systems.kafka, table, systems.location.store())
    changes = [
        *([f"poll {polled.poll.number}: {counted(polled.records, 'record')}"] if polled.polls else []),
        *polled.schema.changes,
    ]
    return dg.MaterializeResult(
        asset_key=table.key("topic"),
        metadata={
            **topic_metadata(instance, table, systems.kafka, state, polled.schema.schema, changes),
            "poll": polled.poll.number,
            "deletes": standard_metadata.DELETES,
            **standard_metadata.values({"records": polled.records, "seconds": polled.seconds}),
            **standard_metadata.watermark(state.polled),
            **jobs.metadata(),
        },
    )
