"""The raw stage: land new records of the topic as objects and manifests in the bucket."""

from functools import partial

import dagster as dg

from cdc_lake.contract.objects import object_names
from cdc_lake.contract.schema import captured_schema
from cdc_lake.jobs.adoption.adopt import AdoptReport
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import parallel_tables, standard_metadata
from cdc_lake.pipeline.assets.job_metadata import JobRuns, warm
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import tiers
from cdc_lake.pipeline.naming import SPARK_POOL, TableFlow
from cdc_lake.pipeline.operations import land_and_apply
from cdc_lake.pipeline.source_health import stream_continuity
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.spark.job_interface import SparkJobs


def build(table: TableFlow) -> dg.AssetsDefinition:
    """Return the raw asset of a table."""
    flow = table.pipeline

    @dg.asset(
        key=table.key("raw"),
        deps=[table.key("topic")],
        description=f"The records of {table.topic}, in objects that are named by offset and committed by manifests.",
        kinds={"s3", "pyspark", *({"json"} if flow.spec.landing.format == "json" else ())},  # Dagster has none of Avro
        group_name=flow.name,
        owners=flow.spec.owners,
        tags=table.tags("raw"),
        pool=SPARK_POOL,
        op_tags=tiers.RAW,
        freshness_policy=flow.freshness_policy,
    )
    def raw_asset(
        context: dg.AssetExecutionContext, kafka: Kafka, store: ObjectStore, spark: dg.ResourceParam[SparkJobs]
    ) -> dg.MaterializeResult[None]:
        warm(context, table, spark)
        work = partial(_landed, kafka=kafka, store=store, spark=spark, owner=f"dagster run {context.run.run_id}")
        return parallel_tables.materialise(context, table, "raw", flow.tables, work, spark)

    return raw_asset


def _landed(
    table: TableFlow, kafka: Kafka, store: ObjectStore, spark: SparkJobs, owner: str
) -> dg.MaterializeResult[None]:
    """Land the table's new records; return the metadata of its raw asset."""
    flow, where, jobs = table.pipeline, location(store), JobRuns(spark)
    bucket = where.store()
    stream_continuity.require_proven(flow, kafka, bucket)
    landing = land_and_apply.land(table, kafka, where, jobs.run, owner)
    found, landed = landing.found, landing.report
    changes: dict[str, str | int | float] = {"changes": standard_metadata.UNCHANGED}
    changes |= {"records": 0, "bytes": 0, "seconds": 0.0}
    if landed is not None:
        if isinstance(landed, AdoptReport) and landed.waiting:
            changes["waiting"] = "; ".join(landed.waiting)
        if landed.manifest is not None:  # None: another run has landed them
            changes["changes"] = f"manifest {landed.manifest}: {landed.records} records in {landed.objects} objects"
        changes |= {
            "records": landed.records,
            "bytes": landed.bytes,
            "objects": landed.objects,
            "dead_letters": landed.dead_letters,
            "seconds": landed.seconds,
        }
    chain, state = found.chain, found.state
    head = chain.head(found.spec.head)
    captured = captured_schema.latest(bucket, flow.name, table.source_table)
    return dg.MaterializeResult(
        metadata={
            "dagster/row_count": 0 if head is None else chain.records(head),
            "dagster/column_schema": standard_metadata.event_schema((c.name, c.type) for c in captured.columns),
            "dagster/column_lineage": standard_metadata.identity_lineage(
                table.key("topic"), [*(c.name for c in captured.columns), *captured_schema.EVENT_FIELDS]
            ),
            "dagster/uri": f"s3://{store.bucket}/{object_names.topic_prefix(flow.name, table.topic)}",
            "manifest": 0 if head is None else head.number,
            "topic_id": state.topic_id,
            **standard_metadata.watermark(table_progress.raw_watermark(bucket, table, state)),
            **standard_metadata.values(changes),
            **jobs.metadata(),
        }
    )
