"""raw: what the topic has and the bucket has not yet, landed by the raw object contract."""

import dagster as dg

from cdc_lake.contract import lease, names, schema
from cdc_lake.jobs import land
from cdc_lake.jobs.adopt import AdoptReport
from cdc_lake.pipeline import adoption, continuity, report, stream
from cdc_lake.pipeline.flow import SPARK_POOL, TableFlow, location
from cdc_lake.pipeline.job_runs import JobRuns, warm
from resources.kafka import Kafka
from resources.object_store import ObjectStore
from resources.spark_jobs import SparkJobs


def build(table: TableFlow) -> dg.AssetsDefinition:
    """The raw asset of a table."""
    flow = table.pipeline

    @dg.asset(
        key=table.key("raw"),
        deps=[table.key("topic")],
        description=f"The records of {table.topic}, in objects named by offset and committed by manifests.",
        kinds={"s3", "json", "pyspark"},
        group_name=flow.name,
        owners=flow.spec.owners,
        tags=table.tags("raw"),
        pool=SPARK_POOL,
        freshness_policy=flow.freshness_policy,
    )
    def raw_asset(
        context: dg.AssetExecutionContext, kafka: Kafka, store: ObjectStore, spark: dg.ResourceParam[SparkJobs]
    ) -> dg.MaterializeResult[None]:
        warm(context, table, spark)
        where, jobs = location(store), JobRuns(spark)
        bucket = where.store()
        continuity.require_proven(flow, kafka, bucket)
        found = stream.landing(table, kafka, where)
        changes: dict[str, str | int | float] = {"changes": report.UNCHANGED}
        changes |= {"records": 0, "bytes": 0, "seconds": 0.0}
        ahead = adoption.pending(table, found.head, found.spec)
        if land.due(found.head, ahead):
            key, owner = names.landing_lease_key(flow.name, table.topic), f"dagster run {context.run.run_id}"
            with lease.held(bucket, key, owner) as held:
                # Asked again: a reset that had the lease before has removed the topic whose offsets were read above.
                found = stream.landing(table, kafka, where, held.claim)
                landed = adoption.land(table, kafka, found.spec, jobs.run)
            if isinstance(landed, AdoptReport) and landed.waiting:
                changes["waiting"] = "; ".join(landed.waiting)
            if landed.manifest is not None:  # None: another run was faster
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
        explained = schema.latest(bucket, flow.name, table.source_table)
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": 0 if head is None else chain.records(head),
                "dagster/column_schema": report.event_schema((c.name, c.type) for c in explained.columns),
                "dagster/column_lineage": report.passed_on(
                    table.key("topic"), [*(c.name for c in explained.columns), *schema.EVENT_FIELDS]
                ),
                "dagster/uri": f"s3://{store.bucket}/{names.topic_prefix(flow.name, table.topic)}",
                "manifest": 0 if head is None else head.number,
                "topic_id": state.topic_id,
                **report.watermark(stream.raw_watermark(bucket, table, state)),
                **report.facts(changes),
                **jobs.metadata(),
            }
        )

    return raw_asset
