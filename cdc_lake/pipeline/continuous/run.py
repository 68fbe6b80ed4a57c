"""Run a pipeline continuously: run the loops of all its tables, and report to Dagster every minute."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

import dagster as dg

from cdc_lake.contract.errors import ContractError, StoreRefusedError, StoreUnreachableError
from cdc_lake.contract.objects import object_names
from cdc_lake.contract.objects.store import PreconditionFailedError
from cdc_lake.contract.table import lease
from cdc_lake.pipeline.assets import lake, raw
from cdc_lake.pipeline.assets.lake import LakeSystems
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.continuous import table_stages
from cdc_lake.pipeline.continuous.stage_loop import StageLoop
from cdc_lake.pipeline.continuous.table_stages import TableStages
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.spark_jobs.job_runs import JobRuns
from resources.athena import Athena
from resources.errors import ResourceError
from resources.glue.catalog import GlueCatalog
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres
from resources.spark.emr.jobs import EmrJobs
from resources.spark.emr.session import EmrSession
from resources.spark.job_interface import SparkJobs
from resources.spark.job_server.client import SparkServerClient
from resources.spark.local import LocalSpark

MAX_STEPS = 4
"""The maximum number of tables that are landed at the same time, and of those that are applied, as in
assets/parallel_tables.py. Long applies do not delay the landing of other tables."""
REPORT_SECONDS = 60.0
"""The interval of an asset's materialisations. One for each commit would be 28,800 a day, at a commit every three
seconds."""
_ALIVE_CHECK_SECONDS = 1.0
"""The interval at which run() checks that Spark's JVM is alive."""

_ALL_COMPILERS = "-XX:TieredStopAtLevel=4"
"""Enables both JIT compilers, C1 and C2. The local profile enables only C1, which is better for a run of a minute. A
process that runs for hours needs a fifth less CPU time with both."""

_log = logging.getLogger(__name__)

T = TypeVar("T")
Report = Callable[[dg.AssetMaterialization | dg.AssetObservation], None]


@contextmanager
def systems(
    pipeline: Pipeline,
    postgres: Postgres,
    kafka: Kafka,
    store: ObjectStore,
    spark: SparkJobs,
    glue: GlueCatalog,
    athena: Athena,
    owner: str,
) -> Iterator[LakeSystems]:
    """Yield the systems that run() uses, with one Spark session until the end of the block.

    `owner` is the owner of the leases. Raises ContractError for a polled pipeline, because run() polls no rows.
    """
    if pipeline.polled:
        raise ContractError(
            f"Cannot run pipeline {pipeline.name} continuously: it has source.kind query, whose rows the sensor "
            f"{pipeline.name}_poll polls. Let `cdc-lake dev` run it."
        )
    jobs = JobRuns(_one_session(spark))
    try:
        yield LakeSystems(pipeline.source_postgres(postgres), kafka, store, jobs, glue, athena, owner)
    finally:
        jobs.stop()


def _one_session(spark: SparkJobs) -> SparkJobs:
    """Return Spark that runs all jobs of this process in one session of its own."""
    if isinstance(spark, EmrJobs):
        return EmrSession(spark)
    if isinstance(spark, SparkServerClient):
        spark = spark.spark
    if isinstance(spark, LocalSpark):
        return spark.model_copy(update={"java_options": f"{spark.java_options} {_ALL_COMPILERS}"})
    return spark


def run(
    pipeline: Pipeline, systems: LakeSystems, report: Report, stop: threading.Event, seconds: float = REPORT_SECONDS
) -> None:
    """Land and apply until `stop` is set, then apply all landed records, and report.

    Every `seconds`, `report` receives a materialisation of each asset that changed, with the sums since the last one,
    and an observation of each asset whose newest attempt failed. Raises LeaseHeldError if the pipeline already runs
    continuously, LeaseLostError if another process took its lease, and ResourceError if Spark's JVM has ended.
    """
    bucket, key = location(systems.store).store(), object_names.continuous_lease_key(pipeline.name)
    landings, applies = threading.Semaphore(MAX_STEPS), threading.Semaphore(MAX_STEPS)
    stages = [table_stages.build(table, systems, landings, applies) for table in pipeline.tables]
    with lease.held(bucket, key, systems.owner) as held:
        try:
            for each in stages:
                each.raw.start()
                for _, loop in each.lakes:
                    loop.start()
            reported = time.monotonic()
            while not stop.wait(_ALIVE_CHECK_SECONDS):
                systems.jobs.require_alive()
                if time.monotonic() >= reported + seconds:
                    _renew(held)
                    _report(stages, systems, report)
                    reported = time.monotonic()
        finally:
            _drain(stages)
            _report(stages, systems, report)


def _renew(held: lease.Lease) -> None:
    """Renew the lease. Raises LeaseLostError if another process took it; while the store does not answer, only logs."""
    try:
        held.renew()
    except PreconditionFailedError:
        held.check()  # its error names the holder
        raise
    except (StoreUnreachableError, StoreRefusedError) as error:
        _log.warning("Cannot renew the pipeline's lease yet: %s", error.user_message)


def _drain(stages: list[TableStages]) -> None:
    """Stop the loops that land, then those that apply, so that all landed records are applied."""
    for each in stages:
        each.raw.stop()
    for each in stages:
        each.raw.join()
    lakes = [loop for each in stages for _, loop in each.lakes]
    for loop in lakes:
        loop.stop()
    for loop in lakes:
        loop.join()


def _report(stages: list[TableStages], systems: LakeSystems, report: Report) -> None:
    for each in stages:
        _report_asset(
            each.raw,
            each.table.key("raw"),
            lambda landings, table=each.table: raw.result(table, landings, systems.store, systems.jobs),  # type: ignore[misc]
            report,
        )
        for table, loop in each.lakes:
            metered = replace(systems, athena=systems.athena.metered(table.database))
            _report_asset(
                loop,
                table.key("lake"),
                lambda batches, table=table, metered=metered: lake.result(table, batches, metered),  # type: ignore[misc]
                report,
            )


def _report_asset(
    loop: StageLoop[T], key: dg.AssetKey, result: Callable[[list[T]], dg.MaterializeResult[None]], report: Report
) -> None:
    """Report an asset's batches and error. If the report fails, the next one includes the batches."""
    batches, failed = loop.unreported()
    try:
        if failed is not None:
            report(dg.AssetObservation(key, metadata={"error": dg.MetadataValue.text(_message(failed))}))
        if batches:
            report(dg.AssetMaterialization(key, metadata=result(batches).metadata))
            loop.reported(len(batches))
    except (ContractError, ResourceError) as error:
        _log.warning("Cannot report %s yet: %s", key.to_user_string(), _message(error))
    except Exception:  # noqa: BLE001 - Dagster's storage raises its driver's errors, which must not end the loops
        _log.exception("Cannot report %s yet", key.to_user_string())


def _message(error: Exception) -> str:
    return str(getattr(error, "user_message", error))
