"""The runs that a pipeline's sensors launch for its tables: which assets they materialise."""

from collections.abc import Mapping, Sequence

import dagster as dg

from cdc_lake.pipeline.automation.jobs import Job, Jobs
from cdc_lake.pipeline.automation.run_requests import Pending, Requested, request
from cdc_lake.pipeline.naming import Flow


def land_name(flow: Flow) -> str:
    """Return the name of the sensor that launches landing and adoption."""
    return f"{flow.name}_land"


def apply_name(flow: Flow) -> str:
    """Return the name of the sensor that launches apply runs."""
    return f"{flow.name}_apply"


def launch_land(context: dg.SensorEvaluationContext, jobs: Jobs, pending: Mapping[str, Pending]) -> Requested:
    """Request a run that lands the records of tables and applies them; it counts as a run of the land sensor.

    `pending` is by table. One run does both: a separate run for the lake would load the definitions and start Spark
    again.
    """
    tables = {table.name: table for table in jobs.flow.tables}

    def part(names: Sequence[str]) -> Job:
        raw = (tables[name].key("raw") for name in names)
        return jobs.land.only(*raw, *(each.key("lake") for name in names for each in tables[name].in_targets))

    return request(context, pending, part, land_name(jobs.flow), jobs.flow.name)


def launch_apply(context: dg.SensorEvaluationContext, jobs: Jobs, pending: Mapping[str, Pending]) -> Requested:
    """Request a run that applies the landed records of tables, unless an active landing run will; see launch_land()."""
    tables = {table.name: table for table in jobs.flow.tables}

    def part(names: Sequence[str]) -> Job:
        lake = (each.key("lake") for name in names for each in tables[name].in_targets)
        return jobs.apply.only(*lake, checking=[tables[name].key("raw") for name in names])

    return request(context, pending, part, apply_name(jobs.flow), jobs.flow.name)
