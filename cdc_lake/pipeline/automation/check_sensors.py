"""The sensors that launch the checks that read whole tables or the whole history.

They are sensors instead of cron schedules, because `checks.verify_every` can be any duration. The duration counts from
the start of the last successful run, so that a machine that was suspended catches up with one run.
"""

import time
from dataclasses import replace

import dagster as dg

from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.automation.jobs import Job, Jobs
from cdc_lake.pipeline.automation.run_requests import Tick, launch, newest_success
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.spec.field_types import seconds

_EVERY_SECONDS = 60
_DAY_SECONDS = 86_400


def build(pipeline: Pipeline, jobs: Jobs) -> list[dg.SensorDefinition]:
    """Return the sensors of a pipeline's scheduled and daily checks; `verify_every: off` leaves the daily ones only."""
    every = pipeline.spec.checks.verify_every
    periods = [(jobs.daily_checks, _DAY_SECONDS)]
    if every != "off":
        periods.insert(0, (jobs.checks, seconds(every)))
    return [_sensor(pipeline, jobs, job, period) for job, period in periods if job.checks]


def _sensor(pipeline: Pipeline, jobs: Jobs, job: Job, period: int) -> dg.SensorDefinition:
    names = ", ".join(sorted({key.name for key in job.checks}))

    @dg.sensor(
        name=job.name,
        job=jobs.definitions[job.name],
        minimum_interval_seconds=_EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Runs {names} every {period} s.",
    )
    def scheduled_checks(context: dg.SensorEvaluationContext) -> Tick:
        tables = {table.key("lake"): table.lake_table for table in pipeline.lake_tables}
        missing = {key: name for key, name in tables.items() if not standard_metadata.latest(context.instance, key)}
        if len(missing) == len(tables):
            return dg.SkipReason(f"lake tables not materialised yet: {', '.join(missing.values())}")
        last = newest_success(context)
        wait = 0.0 if last is None else last.create_timestamp.timestamp() + period - time.time()
        if wait > 0:
            return dg.SkipReason(f"the next run is in {wait:.0f} s")
        # A table whose first load takes long, or fails, does not stop the checks of the others.
        part = replace(job, checks=tuple(key for key in job.checks if key.asset_key not in missing))
        # A run fails if one check cannot be evaluated. It is repeated soon, but not all the time, because each run
        # reads all tables.
        position = f"{job.purpose}:after-{'none' if last is None else last.dagster_run.run_id}"
        return launch(context, part, position, longest_pause=period)

    return scheduled_checks
