"""The sensor that launches apply runs for records that were landed, but not applied by the same run."""

import dagster as dg

from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.automation.pending_runs import pending_apply, reported_instants
from cdc_lake.pipeline.automation.run_requests import Tick
from cdc_lake.pipeline.automation.sensors.parallel_map import map_tables
from cdc_lake.pipeline.automation.sensors.table_runs import apply_name, request_apply
from cdc_lake.pipeline.pipeline import Pipeline
from resources.object_store import ObjectStore


def build(pipeline: Pipeline, jobs: Jobs, seconds: int) -> dg.SensorDefinition:
    """Return the sensor of a pipeline, which runs every `seconds`."""

    @dg.sensor(
        name=apply_name(pipeline),
        job=jobs.definitions[jobs.apply.name],
        minimum_interval_seconds=seconds,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Applies landed records that the run that landed them did not apply, of all tables in one run.",
    )
    def apply(context: dg.SensorEvaluationContext, store: ObjectStore) -> Tick:
        # Dagster's storage is read once, and not by the threads.
        reported = reported_instants(context.instance, pipeline.lake_tables)
        owner = apply_name(pipeline)
        pending = map_tables(context, pipeline.tables, lambda table: pending_apply(table, store, owner, reported))
        return request_apply(context, jobs, pending).tick

    return apply
