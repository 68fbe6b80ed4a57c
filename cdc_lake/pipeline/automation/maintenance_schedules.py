"""The scheduled jobs that maintain lake tables: purge old tombstones, compact log files, cluster small files."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import dagster as dg

from cdc_lake.contract.objects.store import S3Location
from cdc_lake.jobs.maintenance import cluster, compact, purge
from cdc_lake.jobs.maintenance.cluster import ClusterReport, ClusterSpec
from cdc_lake.jobs.maintenance.compact import CompactReport, CompactSpec
from cdc_lake.jobs.maintenance.purge import PurgeReport
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.assets.job_metadata import JobRuns
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.naming import SPARK_POOL, Flow, TableFlow
from resources.object_store import ObjectStore
from resources.spark.job_interface import SparkJobs


@dataclass(frozen=True)
class Service:
    """A maintenance job of a pipeline: its schedule, the tables that need it, and what it runs for a table."""

    name: str
    cron: str
    period: str
    description: str
    """What it does, in the third person."""
    needed: Callable[[TableFlow], bool]
    job: Callable[[Any, Any], Any]
    spec: Callable[[TableFlow, S3Location, str], Any]
    """Returns the job's spec for a table, a bucket and the owner of the lease."""
    result: Callable[[Any], tuple[str, Mapping[str, str | int | float]]]
    """Returns what a report says, as text and as metadata."""

    def tables(self, flow: Flow) -> list[TableFlow]:
        """Return the tables of a pipeline that need the service."""
        return [table for table in flow.lake_tables if self.needed(table)]


def _purged(report: PurgeReport) -> tuple[str, Mapping[str, str | int | float]]:
    text = (
        f"{report.purged} tombstones purged in commit {report.instant}"
        if report.instant
        else f"nothing purged, {report.why}"
    )
    return text, {"purged": report.purged, "purged_to": report.purged_to or "", "seconds": report.seconds}


def _compacted(report: CompactReport) -> tuple[str, Mapping[str, str | int | float]]:
    return _rewritten(report, "nothing compacted, there are no log files")


def _clustered(report: ClusterReport) -> tuple[str, Mapping[str, str | int | float]]:
    return _rewritten(report, "nothing clustered, no partition has several small files")


def _rewritten(report: CompactReport | ClusterReport, nothing: str) -> tuple[str, Mapping[str, str | int | float]]:
    commit = report.commit
    if commit is None:
        return nothing, {"bytes_rewritten": 0, "seconds": report.seconds}
    text = f"{commit.files_written} base files with {commit.rows_written} rows written in commit {commit.instant}"
    facts = {"file_slices": commit.files_written, "bytes_rewritten": commit.bytes_written, "seconds": report.seconds}
    return text, facts


PURGE = Service(
    name="purge",
    cron="17 3 * * *",
    period="daily",
    description="Removes tombstones that are older than the replay window",
    needed=lambda table: table.target.deletes == "hard",
    job=purge.run,
    spec=lambda table, where, owner: table.purge_spec(where, owner),
    result=_purged,
)
COMPACTION = Service(
    name="compact",
    cron="47 * * * *",
    period="hourly",
    description="Merges log files into new base files, which readers of base files only need to see the changes",
    needed=lambda table: table.target.table_type == "mor",
    job=compact.run,
    spec=lambda table, where, owner: CompactSpec(table.upsert_spec(where, owner)),
    result=_compacted,
)
CLUSTERING = Service(
    name="cluster",
    cron="23 4 * * *",
    period="daily",
    description="Merges small files into larger ones, which queries read faster",
    needed=lambda _: True,
    job=cluster.run,
    spec=lambda table, where, owner: ClusterSpec(table.upsert_spec(where, owner)),
    result=_clustered,
)
SERVICES = (PURGE, COMPACTION, CLUSTERING)


def jobs(flow: Flow) -> list[dg.JobDefinition]:
    """Return the job of each service that a table of the pipeline needs."""
    return [_job(flow, service) for service in SERVICES if service.tables(flow)]


def schedules(flow: Flow) -> list[dg.ScheduleDefinition]:
    """Return a schedule for each job of jobs()."""
    return [_schedule(flow, service) for service in SERVICES if service.tables(flow)]


def _schedule(flow: Flow, service: Service) -> dg.ScheduleDefinition:
    # The job by its name: Dagster rejects a second definition of it.
    @dg.schedule(
        name=f"{flow.name}_{service.name}_{service.period}",
        job_name=_job_name(flow, service),
        cron_schedule=service.cron,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"{service.description}: pipeline {flow.name}, {service.period}.",
    )
    def maintenance(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        keys = [table.key("lake") for table in service.tables(flow)]
        if not any(standard_metadata.last(context.instance, key) for key in keys):
            return dg.SkipReason(f"no lake table of pipeline {flow.name} is materialised yet")
        return dg.RunRequest()

    return maintenance


def _job_name(flow: Flow, service: Service) -> str:
    return f"{flow.name}_{service.name}"


def _job(flow: Flow, service: Service) -> dg.JobDefinition:
    ops = [_op(table, service) for table in service.tables(flow)]

    @dg.job(name=_job_name(flow, service), description=f"{service.description}: pipeline {flow.name}.")
    def job() -> None:
        for op in ops:
            op()

    return job


def _op(table: TableFlow, service: Service) -> dg.OpDefinition:
    @dg.op(
        name=f"{service.name}_{table.pipeline.name}_{table.lake_table}".replace(".", "_"),
        description=f"{service.description}: {table.database}.{table.name}.",
        out=dg.Out(dg.Nothing),
        pool=SPARK_POOL,
    )
    def maintain(context: dg.OpExecutionContext, store: ObjectStore, spark: dg.ResourceParam[SparkJobs]) -> None:
        jobs = JobRuns(spark)
        report = jobs.run(service.job, service.spec(table, location(store), f"dagster run {context.run_id}"))
        text, facts = service.result(report)
        context.log.info(f"{table.lake_table}: {text}")
        context.log_event(
            dg.AssetObservation(
                asset_key=table.key("lake"), metadata={**standard_metadata.values(facts), **jobs.metadata()}
            )
        )

    return maintain
