"""The job of a pipeline in continuous mode, and the sensor that keeps a run of it active."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass

import dagster as dg

from cdc_lake.contract.objects import object_names
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.contract.table import lease
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.automation.orphaned_runs import fail_orphans
from cdc_lake.pipeline.automation.run_requests import CONTINUOUS_LONGEST_SECONDS, Tick, launch
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.continuous import run as continuous
from cdc_lake.pipeline.pipeline import PURPOSE, Pipeline
from resources.athena import Athena
from resources.glue.catalog import GlueCatalog
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres
from resources.spark.job_interface import SparkJobs

_EVERY_SECONDS = 10
_RUN = "dagster run "
"""The beginning of the name of a run in a lease."""
_UNLIMITED = {"dagster/max_runtime": str(10 * 365 * 86_400)}
"""Ten years. Run monitoring ends runs without this tag after two hours."""


@dataclass(frozen=True)
class ContinuousRun:
    """The job of continuous mode, for run_requests.launch() (implements `run_requests.Job`)."""

    pipeline: str

    @property
    def name(self) -> str:
        """The job's name."""
        return f"{self.pipeline}_run"

    @property
    def tags(self) -> dict[str, str]:
        """The tags of each of its runs."""
        return {"cdc_lake/pipeline": self.pipeline, PURPOSE: "run", **_UNLIMITED}

    def request(self, run_key: str, tags: dict[str, str]) -> dg.RunRequest:
        """Return a request for a run."""
        return dg.RunRequest(run_key=run_key, job_name=self.name, tags=tags | self.tags)


def jobs(pipeline: Pipeline) -> Sequence[dg.JobDefinition]:
    """Return the job of a pipeline in continuous mode; an empty list for other pipelines."""
    return [_job(pipeline)] if pipeline.spec.mode == "continuous" else []


def _job(pipeline: Pipeline) -> dg.JobDefinition:
    description = (
        f"{pipeline.name}: lands and applies all tables until it is terminated, and then applies all landed records."
    )

    @dg.op(name=f"run_{pipeline.name}", description=description, out=dg.Out(dg.Nothing))
    def run_continuously(
        context: dg.OpExecutionContext,
        postgres: Postgres,
        kafka: Kafka,
        store: ObjectStore,
        spark: dg.ResourceParam[SparkJobs],
        glue: GlueCatalog,
        athena: Athena,
    ) -> None:
        owner = f"{_RUN}{context.run_id}"
        with continuous.systems(pipeline, postgres, kafka, store, spark, glue, athena, owner) as systems:
            continuous.run(pipeline, systems, context.instance.report_runless_asset_event, threading.Event())

    request = ContinuousRun(pipeline.name)

    @dg.job(name=request.name, description=description, tags=request.tags, executor_def=dg.in_process_executor)
    def job() -> None:
        run_continuously()

    return job


def sensor(pipeline: Pipeline, job: dg.JobDefinition) -> dg.SensorDefinition:
    """Return the sensor that starts the run, and starts it again with growing pauses when it has failed."""

    @dg.sensor(
        name=f"{pipeline.name}_run",
        job=job,
        minimum_interval_seconds=_EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Keeps a run of {job.name} active. Switch it off before you terminate that run.",
    )
    def keep_running(context: dg.SensorEvaluationContext, store: ObjectStore) -> Tick:
        bucket = location(store).store()
        if Epochs(bucket, pipeline.name).current() is None:
            return dg.SkipReason(f"pipeline {pipeline.name} has not started: materialise its topics first")
        fail_orphans(context.instance)
        owner = lease.holder(bucket, object_names.continuous_lease_key(pipeline.name))
        if owner is not None and not _has_ended(context, owner):
            return dg.SkipReason(f"{owner} runs the pipeline")
        # The position changes with each commit, so that the pauses then start with the shortest one again.
        digest = table_progress.commits_digest(table_progress.lake_commits(bucket, pipeline))
        position = f"run:{pipeline.name}:{digest}"
        return launch(context, ContinuousRun(pipeline.name), position, CONTINUOUS_LONGEST_SECONDS)

    return keep_running


def _has_ended(context: dg.SensorEvaluationContext, owner: str) -> bool:
    """Return whether the owner of the lease is a run of this Dagster instance that ended without releasing it."""
    run = context.instance.get_run_by_id(owner.removeprefix(_RUN))
    return run is not None and run.is_finished
