"""The jobs of table services, and their schedules (assets/table_services.py)."""

from collections.abc import Sequence
from typing import Any

import dagster as dg

from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.assets.table_services import SERVICES, Service
from cdc_lake.pipeline.pipeline import PURPOSE, Pipeline


def jobs(pipeline: Pipeline) -> Sequence[Any]:
    """Return a job for each service that a table of the pipeline needs; it materialises the service's assets."""
    return [
        dg.define_asset_job(
            _job_name(pipeline, service),
            selection=[service.key(table) for table in service.tables(pipeline)],
            description=f"{service.description}: pipeline {pipeline.name}.",
            tags={"cdc_lake/pipeline": pipeline.name, PURPOSE: service.name},
            executor_def=dg.in_process_executor,
        )
        for service in SERVICES
        if service.tables(pipeline)
    ]


def schedules(pipeline: Pipeline) -> Sequence[dg.ScheduleDefinition]:
    """Return a schedule for each job of jobs()."""
    return [_schedule(pipeline, service) for service in SERVICES if service.tables(pipeline)]


def _schedule(pipeline: Pipeline, service: Service) -> dg.ScheduleDefinition:
    # Name the job instead of defining it: Dagster rejects a second definition.
    @dg.schedule(
        name=f"{pipeline.name}_{service.name}_{service.period}",
        job_name=_job_name(pipeline, service),
        cron_schedule=service.cron,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"{service.description}: pipeline {pipeline.name}, {service.period}.",
    )
    def maintenance(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        keys = [table.key("lake") for table in service.tables(pipeline)]
        if not any(standard_metadata.latest(context.instance, key) for key in keys):
            return dg.SkipReason(f"no lake table of pipeline {pipeline.name} is materialised yet")
        return dg.RunRequest()

    return maintenance


def _job_name(pipeline: Pipeline, service: Service) -> str:
    return f"{pipeline.name}_{service.name}"
