"""The Dagster component cdc_lake.CdcPipeline: builds a pipeline's assets, checks and sensors from one YAML file."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import dagster as dg
from pydantic import BaseModel

from cdc_lake.pipeline import checks as pipeline_checks
from cdc_lake.pipeline.assets import (
    dashboard,
    dataset,
    lake,
    polled,
    raw,
    source,
    table_services,
    topic,
)
from cdc_lake.pipeline.automation import check_sensors, continuous_job, dataset_refresh, maintenance_schedules
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.automation.sensors import (
    apply_sensor,
    connector_sensor,
    health_sensor,
    land_sensor,
    poll_sensor,
    sensor_intervals,
)
from cdc_lake.pipeline.automation.sensors.sensor_intervals import SensorIntervals
from cdc_lake.pipeline.checks import tiers
from cdc_lake.pipeline.checks.upstream_checks import upstream_of
from cdc_lake.pipeline.continuous import run as continuous
from cdc_lake.pipeline.loading import build_pipeline
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.scaffold import PipelineScaffolder
from cdc_lake.pipeline.spec.pipeline import PipelineSpec


@dg.scaffold_with(PipelineScaffolder)
class CdcPipeline(dg.Component):
    """A pipeline that copies every committed change of PostgreSQL tables to lake tables, datasets and dashboards.

    It is declared in a `defs.yaml` (all fields: docs/reference/pipeline-yaml.md):

        type: cdc_lake.CdcPipeline
        attributes: { name: shop, source: { database: devdb, schema: sales, tables: [orders], publication: shop }, … }
    """

    def __init__(self, spec: PipelineSpec) -> None:
        self.spec = spec

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """Return the spec's class.

        Dagster could derive a model from it, but a derived model accepts templates, which the command line cannot
        resolve, and its errors name classes instead of the YAML's fields.
        """
        return PipelineSpec

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """Return the component of a YAML file whose attributes are already validated."""
        if not isinstance(attributes, PipelineSpec):
            raise TypeError(f"Cannot load {context.path}: its attributes were not validated by Dagster.")
        return cls(attributes)

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """Return the pipeline's definitions; the code location binds the resources."""
        return build(build_pipeline(self.spec, Path(context.path)), sensor_intervals.for_profile())


def build(pipeline: Pipeline, intervals: SensorIntervals = SensorIntervals()) -> dg.Definitions:  # noqa: B008 - it is frozen
    """Return the definitions of one pipeline."""
    checks = pipeline_checks.build(pipeline)
    jobs = Jobs(pipeline, checks)
    required = tiers.correctness(checks)
    datasets, dashboards = upstream_of("dataset", required), upstream_of("dashboard", required)
    capture = (polled.source, polled.topic) if pipeline.polled else (source, topic)
    assets = [stage.build(table) for table in pipeline.tables for stage in (*capture, raw)]
    assets += [lake.build(table) for table in pipeline.lake_tables]
    assets += table_services.build(pipeline)
    assets += [dataset.build(pipeline, each, datasets) for each in pipeline.spec.datasets]
    assets += [dashboard.build(pipeline, file, dashboards) for file in pipeline.spec.dashboards]
    refresh = []
    if jobs.refresh.assets:
        # In continuous mode there is a commit every few seconds, so datasets are refreshed at most once per report.
        pause = intervals.listing_seconds if pipeline.spec.mode == "triggered" else continuous.REPORT_SECONDS
        refresh = [dataset_refresh.build(pipeline, jobs, datasets, dashboards, int(pause))]
    continuous_jobs = continuous_job.jobs(pipeline)
    landing_sensors = [continuous_job.sensor(pipeline, job) for job in continuous_jobs] or [
        land_sensor.build(pipeline, jobs, intervals.listing_seconds),
        apply_sensor.build(pipeline, jobs, intervals.listing_seconds),
    ]
    return dg.Definitions(
        assets=assets,
        asset_checks=checks,
        sensors=[
            poll_sensor.build(pipeline, jobs)
            if pipeline.polled
            else connector_sensor.build(pipeline, jobs, intervals.connector_seconds),
            *landing_sensors,
            health_sensor.build(pipeline),
            *refresh,
            *check_sensors.build(pipeline, jobs),
        ],
        jobs=[*jobs.definitions.values(), *continuous_jobs, *maintenance_schedules.jobs(pipeline)],
        schedules=maintenance_schedules.schedules(pipeline),
    )
