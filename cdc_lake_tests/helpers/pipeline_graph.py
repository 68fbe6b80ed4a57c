"""The asset graph of a pipeline that a test defines, over the resources of the running stack."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import dagster as dg

from cdc_lake.demo.graph import Graph
from cdc_lake.pipeline import component
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.profile import run_resources


def graph(
    pipeline: Pipeline, checked: Collection[str] = ("topic",), resources: Mapping[str, Any] | None = None
) -> Graph:
    """Return the graph, with the checks of the stages `checked`; `resources` replace those of the profile."""
    parts = component.build(pipeline)
    definitions = dg.Definitions(
        assets=parts.assets,
        asset_checks=[
            check
            for check in parts.asset_checks or ()
            if all(key.asset_key.path[1] in checked for key in check.check_keys)
        ],
        # The pipeline's own jobs select checks that are left out here.
        jobs=[dg.define_asset_job(pipeline.name, selection="*")],
        resources={**run_resources(), **(resources or {})},
        executor=dg.in_process_executor,
    )
    return Graph(pipeline.name, definitions, dg.DagsterInstance.ephemeral())
