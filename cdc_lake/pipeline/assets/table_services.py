"""The assets of table services, which depend on the lake tables that they maintain.

The services purge old tombstones, compact log files, cluster small files, clean old files and commits, and for polled
tables reconcile deletes. automation/maintenance_schedules.py has their jobs and schedules.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import dagster as dg

from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.plurals import counted
from cdc_lake.jobs.maintenance import clean, cluster, compact, purge
from cdc_lake.jobs.maintenance.clean import CleanReport, CleanSpec
from cdc_lake.jobs.maintenance.cluster import ClusterReport, ClusterSpec
from cdc_lake.jobs.maintenance.compact import CompactReport, CompactSpec
from cdc_lake.jobs.maintenance.purge import PurgeReport
from cdc_lake.jobs.poll import reconcile
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.operations import reconciliation
from cdc_lake.pipeline.operations.polling import PollSystems
from cdc_lake.pipeline.operations.reconciliation import ReconcileResult
from cdc_lake.pipeline.pipeline import SPARK_POOL, Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.spark_jobs.job_runs import JobRuns
from cdc_lake.pipeline.spec.field_types import seconds
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres
from resources.spark.job_interface import SparkJobs

STAGE = "maintenance"
_LATE_PERIODS = 2.5
"""An asset is late when its service has not run for this many of its periods."""


def _job(
    job: Callable[[Any, Any], Any], spec: Callable[[PipelineTable, S3Location, str], Any]
) -> Callable[[PipelineTable, PollSystems], Any]:
    """Return a Service.run that runs one job; `spec` returns the job's spec for a table, a bucket and a lease owner."""
    return lambda table, systems: systems.run(job, spec(table, systems.location, systems.owner))


@dataclass(frozen=True)
class Service:
    """A table service: its schedule, the tables that need it, and what it runs for a table."""

    name: str
    cron: str
    period: Literal["hourly", "daily"]
    description: str
    """What it does, in the third person."""
    is_needed: Callable[[PipelineTable], bool]
    job: Callable[[Any, Any], Any]
    """The Spark job."""
    run: Callable[[PipelineTable, PollSystems], Any]
    """Runs the job for a table, and returns the job's report, or a report that contains it."""
    result: Callable[[Any], tuple[str, Mapping[str, str | int | float]]]
    """Returns a report's summary as text, and its numbers as metadata."""

    def tables(self, pipeline: Pipeline) -> list[PipelineTable]:
        """Return the lake tables of a pipeline that need the service."""
        return [table for table in pipeline.lake_tables if self.is_needed(table)]

    def key(self, table: PipelineTable) -> dg.AssetKey:
        """Return the key of its asset for a table: `[<pipeline>, maintenance, <table>_<target>_<service>]`."""
        return table.pipeline.key(STAGE, f"{table.key('lake').path[-1]}_{self.name}")


def _purged(report: PurgeReport) -> tuple[str, Mapping[str, str | int | float]]:
    text = (
        f"{counted(report.purged, 'tombstone')} purged in commit {report.instant}"
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
    text = (
        f"{counted(commit.files_written, 'base file')} with {counted(commit.rows_written, 'row')} written in commit "
        f"{commit.instant}"
    )
    facts = {"file_slices": commit.files_written, "bytes_rewritten": commit.bytes_written, "seconds": report.seconds}
    return text, facts


def _cleaned(report: CleanReport) -> tuple[str, Mapping[str, str | int | float]]:
    text = (
        f"{counted(report.files_deleted, 'file')} with {counted(report.bytes_deleted, 'byte')} deleted, "
        f"{counted(report.commits_archived, 'commit')} archived"
    )
    facts = {
        "files_deleted": report.files_deleted,
        "bytes_deleted": report.bytes_deleted,
        "commits_archived": report.commits_archived,
        "seconds": report.seconds,
    }
    return text, facts


def _reconciled(found: ReconcileResult) -> tuple[str, Mapping[str, str | int | float]]:
    report = found.report
    if report is None:
        return "nothing to reconcile, no record of the table is in the lake yet", {}
    text = f"{counted(report.deletes, 'delete')} sent; landing and applying follow"
    facts = {
        "deletes": report.deletes,
        "lake_keys_read": report.lake_keys,
        "source_keys_read": report.source_keys,
        "seconds": report.seconds,
    }
    return text, facts


PURGE = Service(
    name="purge",
    cron="17 3 * * *",
    period="daily",
    description="Removes tombstones that are older than the replay window",
    is_needed=lambda table: table.target.deletes == "hard",
    job=purge.run,
    run=_job(purge.run, lambda table, where, owner: table.purge_spec(where, owner)),
    result=_purged,
)
COMPACTION = Service(
    name="compact",
    cron="47 * * * *",
    period="hourly",
    description="Merges log files into new base files, so that readers of only the base files also see the changes",
    is_needed=lambda table: table.is_merge_on_read,
    job=compact.run,
    run=_job(compact.run, lambda table, where, owner: CompactSpec(table.upsert_spec(where, owner))),
    result=_compacted,
)
CLUSTERING = Service(
    name="cluster",
    cron="23 4 * * *",
    period="daily",
    description="Merges small files into larger ones, which queries read faster",
    is_needed=lambda table: table.is_hudi,
    job=cluster.run,
    run=_job(cluster.run, lambda table, where, owner: ClusterSpec(table.upsert_spec(where, owner))),
    result=_clustered,
)
CLEANING = Service(
    name="clean",
    cron="53 4 * * *",
    period="daily",
    description="Deletes files that belong only to states older than the table's history, and archives their commits. "
    "Each commit does the same, so only a table without new commits needs this service",
    is_needed=lambda table: table.is_hudi,
    job=clean.run,
    run=_job(clean.run, lambda table, where, owner: CleanSpec(table.upsert_spec(where, owner))),
    result=_cleaned,
)
RECONCILIATION = Service(
    name="reconcile",
    cron="37 2 * * *",
    period="daily",
    description="Finds the rows that were deleted at the source, which polling does not see, by reading all keys of "
    "both sides, and sends a delete for each through the topic",
    is_needed=lambda table: table.pipeline.polled and table == table.in_reconciled_target,
    job=reconcile.run,
    run=reconciliation.reconcile,
    result=_reconciled,
)
SERVICES = (PURGE, COMPACTION, CLUSTERING, CLEANING, RECONCILIATION)


def build(pipeline: Pipeline) -> Sequence[dg.AssetsDefinition]:
    """Return an asset for each service and each table that needs it."""
    return [_asset(table, service) for service in SERVICES for table in service.tables(pipeline)]


def _asset(table: PipelineTable, service: Service) -> dg.AssetsDefinition:
    @dg.asset(
        key=service.key(table),
        deps=[table.key("lake")],
        description=f"{service.description}: {table.database}.{table.name}, {service.period}.",
        kinds={table.target.format, "pyspark"},
        group_name=f"{table.pipeline.name}_{STAGE}",
        owners=table.pipeline.spec.owners,
        tags=table.tags(STAGE),
        pool=SPARK_POOL,
        freshness_policy=dg.FreshnessPolicy.time_window(_LATE_PERIODS * timedelta(seconds=seconds(service.period))),
    )
    def service_asset(
        context: dg.AssetExecutionContext,
        postgres: Postgres,
        kafka: Kafka,
        store: ObjectStore,
        spark: dg.ResourceParam[SparkJobs],
    ) -> dg.MaterializeResult[None]:
        jobs, owner = JobRuns(spark), f"dagster run {context.run.run_id}"
        source = table.pipeline.source_postgres(postgres)
        report = service.run(table, PollSystems(source, kafka, location(store), jobs.run, owner))
        text, facts = service.result(report)
        return dg.MaterializeResult(metadata={**standard_metadata.values({"result": text, **facts}), **jobs.metadata()})

    return service_asset
