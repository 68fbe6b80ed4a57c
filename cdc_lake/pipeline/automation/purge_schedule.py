"""The daily job that purges old tombstones from tables with `deletes: hard`."""

import dagster as dg

from cdc_lake.jobs.maintenance import purge
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.assets.job_metadata import JobRuns
from cdc_lake.pipeline.naming import SPARK_POOL, Flow, TableFlow, location
from resources.object_store import ObjectStore
from resources.spark.job_interface import SparkJobs

_DAILY = "17 3 * * *"


def purge_job(flow: Flow) -> str:
    """Return the name of the job that purges the pipeline's tombstones."""
    return f"{flow.name}_purge"


def jobs(flow: Flow) -> list[dg.JobDefinition]:
    """Return the purge job if a table has `deletes: hard`."""
    hard = [table for table in flow.tables if table.spec.deletes == "hard"]
    return [_purge(flow, hard)] if hard else []


def schedules(flow: Flow) -> list[dg.ScheduleDefinition]:
    """Return a daily schedule for each job of jobs()."""
    return [
        dg.ScheduleDefinition(
            name=f"{job.name}_daily",
            job=job,
            cron_schedule=_DAILY,
            default_status=dg.DefaultScheduleStatus.RUNNING,
        )
        for job in jobs(flow)
    ]


def _purge(flow: Flow, tables: list[TableFlow]) -> dg.JobDefinition:
    ops = [_purge_op(table) for table in tables]

    @dg.job(
        name=purge_job(flow),
        description=f"Removes tombstones of pipeline {flow.name} that are older than {flow.spec.replay_window}.",
    )
    def job() -> None:
        for op in ops:
            op()

    return job


def _purge_op(table: TableFlow) -> dg.OpDefinition:
    flow = table.pipeline

    @dg.op(
        name=f"purge_{flow.name}_{table.name}",
        description=f"Removes old tombstones of {flow.spec.catalog}.{table.name}.",
        out=dg.Out(dg.Nothing),
        pool=SPARK_POOL,
    )
    def purge_tombstones(
        context: dg.OpExecutionContext, store: ObjectStore, spark: dg.ResourceParam[SparkJobs]
    ) -> None:
        spec = table.purge_spec(location(store), owner=f"dagster run {context.run_id}")
        jobs = JobRuns(spark)
        done = jobs.run(purge.run, spec)
        context.log.info(
            f"{table.name}: {done.purged} tombstones purged in commit {done.instant}"
            if done.instant
            else f"{table.name}: nothing purged, {done.why}"
        )
        context.log_event(
            dg.AssetObservation(
                asset_key=table.key("lake"),
                metadata={
                    **standard_metadata.values(
                        {"purged": done.purged, "purged_to": done.purged_to or "", "seconds": done.seconds}
                    ),
                    **jobs.metadata(),
                },
            )
        )

    return purge_tombstones
