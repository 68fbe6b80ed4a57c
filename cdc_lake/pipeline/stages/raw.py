"""raw: what the topic has and the bucket has not yet, landed by the raw object contract."""

import dagster as dg

from cdc_lake.contract import lease, names, schema
from cdc_lake.contract.chain import Chain
from cdc_lake.contract.manifest import Manifest
from cdc_lake.jobs import land
from cdc_lake.jobs.adopt import AdoptReport
from cdc_lake.pipeline import adoption, continuity, report, stream, topic_state
from cdc_lake.pipeline.flow import RUNS_WITHIN, TableFlow, location
from cdc_lake.pipeline.job_runs import JobRuns
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
        freshness_policy=dg.FreshnessPolicy.time_window(RUNS_WITHIN),
    )
    def raw_asset(
        context: dg.AssetExecutionContext, kafka: Kafka, store: ObjectStore, spark: dg.ResourceParam[SparkJobs]
    ) -> dg.MaterializeResult[None]:
        chosen = context.run.asset_selection  # None: all
        if chosen is None or table.key("lake") in chosen:
            spark.warm()  # the lake or a check of it will need it, whether there is anything to land or not
        where, jobs = location(store), JobRuns(spark)
        bucket = where.store()
        continuity.require_proven(flow, kafka, bucket)
        state = topic_state.now(kafka, table)
        chain = Chain(bucket, flow.name, table.topic)
        head = chain.head()
        changes: dict[str, str | int | float] = {"changes": report.UNCHANGED}
        changes |= {"records": 0, "bytes": 0, "seconds": 0.0}
        ahead = adoption.pending(table, head, stream.land_spec(table, state, where, kafka.spark_options()))
        if land.due(head, ahead):
            key, owner = names.landing_lease_key(flow.name, table.topic), f"dagster run {context.run.run_id}"
            with lease.held(bucket, key, owner) as held:
                # Asked again: a reset that had the lease before has removed the topic whose offsets were read above.
                state = topic_state.now(kafka, table)
                spec = stream.land_spec(table, state, where, kafka.spark_options(), held.claim)
                landed = adoption.land(table, kafka, spec, jobs.run)
            head = chain.head(0 if head is None else head.number)
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
        explained = schema.latest(bucket, flow.name, table.source_table)
        return dg.MaterializeResult(
            metadata={
                "dagster/row_count": _landed(context, chain, head),
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


def _landed(context: dg.AssetExecutionContext, chain: Chain, head: Manifest | None) -> int:
    """Records in the whole chain, counted on from the last materialisation: a chain grows by a manifest a minute."""
    if head is None:
        return 0
    last = report.last(context)
    known, rows, topic = (last.get(name) for name in ("manifest", "dagster/row_count", "topic_id"))
    if topic is not None and topic.value == head.topic_id and known is not None and rows is not None:
        number, count = int(str(known.value)), int(str(rows.value))
        if number <= head.number:
            return count + sum(manifest.records for manifest in chain.since(number))
    return sum(manifest.records for manifest in chain.since(0))
