"""Request the runs that a pipeline's sensors launch for its tables, with the assets that each run materialises."""

from collections.abc import Mapping, Sequence

import dagster as dg

from cdc_lake.pipeline.automation.jobs import Job, Jobs
from cdc_lake.pipeline.automation.run_requests import Pending, RunRequests, request
from cdc_lake.pipeline.pipeline import Pipeline


def land_name(pipeline: Pipeline) -> str:
    """Return the name of the sensor that launches landing and adoption."""
    return f"{pipeline.name}_land"


def apply_name(pipeline: Pipeline) -> str:
    """Return the name of the sensor that launches apply runs."""
    return f"{pipeline.name}_apply"


def poll_name(pipeline: Pipeline) -> str:
    """Return the name of the sensor that launches polls."""
    return f"{pipeline.name}_poll"


def request_poll(context: dg.SensorEvaluationContext, jobs: Jobs, pending: Mapping[str, Pending]) -> RunRequests:
    """Request runs that poll tables; `pending` is by table. The land sensor lands their records when the flush
    rule allows it.
    """
    tables = {table.name: table for table in jobs.pipeline.tables}

    def part(names: Sequence[str]) -> Job:
        return jobs.poll.only(*(tables[name].key("topic") for name in names))

    return request(context, pending, part, poll_name(jobs.pipeline), jobs.pipeline.name)


def request_land(
    context: dg.SensorEvaluationContext,
    jobs: Jobs,
    pending: Mapping[str, Pending],
    can_wait: Mapping[str, str] | None = None,
) -> RunRequests:
    """Request runs that land the records of tables and apply them; they count as runs of the land sensor.

    `pending` is by table. One run does both: a separate run for the lake would load the definitions and start Spark
    again. Tables in `can_wait` join the run of the others.
    """
    return _request(context, jobs, jobs.land, land_name(jobs.pipeline), pending, stages=("raw",), can_wait=can_wait)


def request_apply(context: dg.SensorEvaluationContext, jobs: Jobs, pending: Mapping[str, Pending]) -> RunRequests:
    """Request runs that apply the landed records of tables, unless an active landing run will; see request_land()."""
    return _request(context, jobs, jobs.apply, apply_name(jobs.pipeline), pending, checked=("raw",))


def _request(
    context: dg.SensorEvaluationContext,
    jobs: Jobs,
    job: Job,
    sensor: str,
    pending: Mapping[str, Pending],
    *,
    stages: Sequence[str] = (),
    checked: Sequence[str] = (),
    can_wait: Mapping[str, str] | None = None,
) -> RunRequests:
    """Request runs that materialise `stages` and the lake, and evaluate their checks and those of `checked`."""
    tables = {table.name: table for table in jobs.pipeline.tables}

    def part(names: Sequence[str]) -> Job:
        selected = [tables[name] for name in names]
        assets = [table.key(stage) for table in selected for stage in stages]
        lake = [each.key("lake") for table in selected for each in table.in_targets]
        return job.only(*assets, *lake, checking=[table.key(stage) for table in selected for stage in checked])

    slow = _first_loads(context.instance, jobs.pipeline)
    return request(context, pending, part, sensor, jobs.pipeline.name, can_wait=can_wait, slow=slow)


def _first_loads(instance: dg.DagsterInstance, pipeline: Pipeline) -> set[str]:
    """Return the names of tables that are not loaded yet in a target; a first load may take hours."""
    latest = instance.get_latest_materialization_events([table.key("lake") for table in pipeline.lake_tables])
    return {table.name for table in pipeline.lake_tables if not latest.get(table.key("lake"))}
