"""The lake stage: apply landed records to the Hudi table, and register table and view in the catalog.

For a Parquet target, it only registers them (parquet_target/registering.py); assets/parquet_lake.py has the metadata.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import dagster as dg

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.plurals import counted
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.contract.table.timeline import Commit, write_amplification
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import catalog_tables, parquet_lake, raw, standard_metadata
from cdc_lake.pipeline.assets.backlog import Backlog
from cdc_lake.pipeline.assets.parallel_tables import TableThreads
from cdc_lake.pipeline.automation import step_priority
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.operations import land_and_apply, snapshot_sweep
from cdc_lake.pipeline.operations.land_and_apply import ApplyResult
from cdc_lake.pipeline.parquet_target import registering
from cdc_lake.pipeline.parquet_target.registering import RegisterResult
from cdc_lake.pipeline.pipeline import SPARK_POOL, SourcePostgres
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.source_health import polled_source, topic_state
from cdc_lake.pipeline.spark_jobs.job_runs import JobRuns
from resources.athena import Athena
from resources.errors import ResourceError
from resources.glue.catalog import GlueCatalog
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres
from resources.spark.job_interface import SparkJobs

_log = logging.getLogger(__name__)


def build(table: PipelineTable) -> dg.AssetsDefinition:
    """Return the lake asset of a table."""
    pipeline = table.pipeline
    catalog = table.database

    @dg.asset(
        key=table.key("lake"),
        deps=[table.key("raw")],
        description=_description(table),
        kinds={"hudi", "pyspark", "s3"} if table.is_hudi else parquet_lake.kinds(table),
        group_name=pipeline.name,
        owners=pipeline.spec.owners,
        tags=table.tags("lake"),
        pool=SPARK_POOL if table.is_hudi else None,
        op_tags=step_priority.LAKE,
        freshness_policy=pipeline.freshness_policy,
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
        table_threads: dg.ResourceParam[TableThreads],
    ) -> dg.MaterializeResult[None]:
        def work(each: PipelineTable) -> list[dg.MaterializeResult[None]]:
            jobs, owner = JobRuns(spark, table_threads.stopped), f"dagster run {context.run.run_id}"
            source, queries = pipeline.source_postgres(postgres), athena.metered(each.database, table_threads.stopped)
            systems = LakeSystems(source, kafka, store, jobs, glue, queries, owner)
            landing_jobs = JobRuns(spark, table_threads.stopped)
            backlog = Backlog(context, each, kafka, location(store).store(), table_threads.began)
            batches, landings = [apply(each, systems)], []
            try:
                while not table_threads.stopped.is_set() and (step := backlog.next_step()) is not None:
                    if step == "land":
                        landings.append(raw.land(each, source, kafka, store, landing_jobs, owner))
                    batches.append(apply(each, systems))
            except (ContractError, ResourceError) as error:
                # The run reports its batches. The next run lands and applies the rest; it fails if the error persists.
                _log.warning("Cannot continue with %s in this run: %s", each.lake_table, error)
            own = result(each, batches, systems)
            return [own, raw.result(each, landings, store, landing_jobs)] if landings else [own]

        return table_threads.materialise(context, table, "lake", pipeline.lake_tables, work, spark)

    return lake_asset


@dataclass(frozen=True)
class LakeSystems:
    """The systems that the stage uses, and the owner of its leases."""

    postgres: SourcePostgres
    kafka: Kafka
    store: ObjectStore
    jobs: JobRuns
    glue: GlueCatalog
    athena: Athena
    owner: str


@dataclass(frozen=True)
class LakeBatch:
    """The result of one call of apply().

    `commit` is the table's newest commit after the call. `swept` is the number of rows that the call deleted because
    only an interrupted snapshot had read them.
    """

    applied: ApplyResult
    commit: Commit | None
    swept: int

    @property
    def has_changes(self) -> bool:
        """Whether there was something to apply or to delete."""
        return self.applied.report is not None or self.swept > 0


Batch: TypeAlias = LakeBatch | RegisterResult
"""The result of one call of apply(), for a Hudi target or a Parquet target."""


def apply(table: PipelineTable, systems: LakeSystems) -> Batch:
    """Apply the table's landed records, and register table and view in the catalog.

    Raises the errors of the job, of the schema capture and of the catalog.
    """
    where, bucket = location(systems.store), location(systems.store).store()
    if not table.is_hudi:
        return registering.register(
            table, systems.postgres, systems.kafka, systems.glue, systems.athena, where, systems.owner
        )
    Epochs(bucket, table.pipeline.name).require_whole()
    spec = table.upsert_spec(where, owner=systems.owner)
    applied = land_and_apply.apply(table, systems.postgres, spec, systems.jobs.run)
    commit = applied.commit
    swept = snapshot_sweep.sweep_once(
        table, bucket, spec, partial(_watermark, table, systems, commit), commit, systems.jobs.run
    )
    if swept is not None and swept.swept:
        commit = swept.commit
    if commit is not None:  # in continuous mode, the first landing may not be complete
        failpoints.reached("lake.before_catalog")
        catalog_tables.register(
            table,
            applied.schema.schema.lake_columns(),
            systems.glue,
            systems.athena,
            bucket,
            f"s3://{systems.store.bucket}/{table.lake_prefix.rstrip('/')}",
            commit,
        )
        failpoints.reached("lake.after_catalog")
    return LakeBatch(applied, commit, 0 if swept is None else swept.swept)


def result(table: PipelineTable, found: Sequence[Batch], systems: LakeSystems) -> dg.MaterializeResult[None]:
    """Return the metadata of batches, oldest first and at least one: their sums, and the state after the last one."""
    if registered := [each for each in found if isinstance(each, RegisterResult)]:
        return parquet_lake.result(table, registered, systems.athena, systems.store.bucket)
    batches = [each for each in found if isinstance(each, LakeBatch)]
    athena = systems.athena
    commit, schema = batches[-1].commit, batches[-1].applied.schema.schema
    reached = _watermark(table, systems, commit)
    columns = schema.lake_columns()
    counted = athena.query(f'SELECT count(*), count_if("__deleted") FROM {_quoted(table)}')  # noqa: S608
    rows, deleted = counted.rows[0]
    return dg.MaterializeResult(
        asset_key=table.key("lake"),
        metadata={
            "dagster/row_count": rows - deleted,
            "deleted_rows": deleted,
            "dagster/column_schema": standard_metadata.schema(columns),
            "dagster/column_lineage": standard_metadata.lake_lineage(table.key("raw"), (name for name, _ in columns)),
            "dagster/uri": f"s3://{systems.store.bucket}/{table.lake_prefix}",
            "schema_version": schema.version,
            "instant": "none" if commit is None else commit.instant,
            **standard_metadata.watermark(reached),
            **standard_metadata.values(_changes(batches)),
            **standard_metadata.athena_usage(athena),
            **systems.jobs.metadata(),
        },
    )


def _watermark(table: PipelineTable, systems: LakeSystems, commit: Commit | None) -> Watermark | None:
    bucket = location(systems.store).store()
    return table_progress.applied_watermark(bucket, table, topic_state.current(systems.kafka, table, bucket), commit)


def _description(table: PipelineTable) -> str:
    if table.is_hudi:
        found = (
            f"Hudi table {table.database}.{table.name}: the newest state of each row of {table.source_table}, one row "
            f"for each key. {_readers(table)}"
        )
    else:
        found = parquet_lake.description(table)
    if not table.pipeline.polled:
        return found
    return f"{found} Deletes are {standard_metadata.DELETES}: {polled_source.delete_finder(table)} finds them."


def _readers(table: PipelineTable) -> str:
    """Return which tables of the catalog to query."""
    if not table.is_merge_on_read:
        return f"Query {table.database}.{table.view}, which leaves out the rows that are deleted at the source."
    return (
        f"Query {table.database}.{table.name}_rt for every commit, or {table.catalog_table} for the state of the last "
        f"compaction; {table.view} leaves out the rows that are deleted at the source."
    )


def _quoted(table: PipelineTable) -> str:
    return f'"{table.database}"."{table.catalog_table}"'


def _changes(batches: Sequence[LakeBatch]) -> dict[str, str | int | float]:
    """Return the sums of the batches that committed, and the newest of their instants."""
    committed = [
        (batch.applied, batch.applied.report, batch.applied.report.commit)
        for batch in batches
        if batch.applied.report is not None and batch.applied.report.commit is not None
    ]
    changes: dict[str, str | int | float] = {"changes": standard_metadata.UNCHANGED, "events": 0, "seconds": 0.0}
    if committed:
        reports, commits = [report for _, report, _ in committed], [commit for _, _, commit in committed]
        events, keys = sum(report.events for report in reports), sum(report.keys for report in reports)
        schema = [text for applied, report, _ in committed for text in report.schema_changes or applied.schema.changes]
        records = (
            [f"{counted(events, 'event')} of {counted(keys, 'key')}"]
            if any(report.manifests for report in reports)
            else []
        )
        which = "commit" if len(commits) == 1 else f"{len(commits)} commits up to"
        operation = next((report.operation for report in reversed(reports) if report.operation), "")
        amplification = write_amplification(commits)
        changes = {
            "changes": f"{which} {commits[-1].instant}: {', '.join([*schema, *records])}",
            **({"operation": operation} if operation else {}),
            "commits": len(commits),
            "events": events,
            "keys": keys,
            "inserts": sum(commit.inserts for commit in commits),
            "updates": sum(commit.updates for commit in commits),
            "dead_letters": sum(report.dead_letters for report in reports),
            "raw_bytes": sum(commit.raw_bytes or 0 for commit in commits),
            "bytes_written": sum(commit.bytes_written for commit in commits),
            "files_written": sum(commit.files_written for commit in commits),
            **({} if amplification is None else {"write_amplification": amplification}),
            "seconds": sum(report.seconds for report in reports),
        }
    if swept := sum(batch.swept for batch in batches):
        changes["swept"] = swept
        deleted = f"deleted {counted(swept, 'row')} that only an interrupted snapshot had read"
        changes["changes"] = f"{changes['changes']}; {deleted}" if committed else deleted
    return changes
