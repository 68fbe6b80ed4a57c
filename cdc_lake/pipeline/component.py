"""cdc_lake.CdcPipeline: one YAML file, one pipeline of assets, checks and sensors."""

from __future__ import annotations

from pathlib import Path
from typing import Self

import dagster as dg
from pydantic import BaseModel

from cdc_lake.pipeline.assets import dashboard, dataset, lake, raw, source, topic
from cdc_lake.pipeline.automation import dataset_refresh, health_sensor, purge_schedule, sensor_intervals, sensors
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.automation.sensor_intervals import Pace
from cdc_lake.pipeline.checks import all_checks, check_schedule, tiers
from cdc_lake.pipeline.checks.upstream_checks import upstream_of
from cdc_lake.pipeline.loading import flow as flow_of
from cdc_lake.pipeline.naming import Flow
from cdc_lake.pipeline.scaffold import PipelineScaffolder
from cdc_lake.pipeline.spec import PipelineSpec


@dg.scaffold_with(PipelineScaffolder)
class CdcPipeline(dg.Component):
    """Every committed change of some PostgreSQL tables in lake tables, datasets and dashboards."""

    def __init__(self, spec: PipelineSpec) -> None:
        self.spec = spec

    @classmethod
    def get_model_cls(cls) -> type[BaseModel]:
        """The spec itself, not a model that Dagster derives from it: that one takes templates, which the command
        line could not fill in, and its errors name classes and not the fields of the YAML.
        """
        return PipelineSpec

    @classmethod
    def load(cls, attributes: BaseModel | None, context: dg.ComponentLoadContext) -> Self:
        """The component of a YAML file whose attributes are validated already."""
        if not isinstance(attributes, PipelineSpec):
            raise TypeError(f"{context.path}: attributes are a {type(attributes).__name__} and not a PipelineSpec")
        return cls(attributes)

    def build_defs(self, context: dg.ComponentLoadContext) -> dg.Definitions:
        """The pipeline's definitions; the resources are bound by the code location."""
        return build(flow_of(self.spec, Path(context.path)), sensor_intervals.of_profile())


def build(flow: Flow, looks: Pace = Pace()) -> dg.Definitions:  # noqa: B008 - it is frozen
    """The definitions of one pipeline, whose sensors look at this pace."""
    made = all_checks.build(flow)
    jobs = Jobs(flow, made)
    judged = tiers.of_content(made)
    datasets, dashboards = upstream_of("dataset", judged), upstream_of("dashboard", judged)
    assets = [stage.build(table) for table in flow.tables for stage in (source, topic, raw, lake)]
    assets += [dataset.build(flow, file, datasets) for file in flow.spec.datasets]
    assets += [dashboard.build(flow, file, dashboards) for file in flow.spec.dashboards]
    follows = [dataset_refresh.build(flow, jobs, datasets, looks.listing_seconds)] if jobs.refresh.assets else []
    return dg.Definitions(
        assets=assets,
        asset_checks=made,
        sensors=[
            *sensors.build(flow, jobs, looks),
            health_sensor.build(flow),
            *follows,
            *check_schedule.build(flow, jobs),
        ],
        jobs=[*jobs.definitions.values(), *purge_schedule.jobs(flow)],
        schedules=purge_schedule.schedules(flow),
    )
