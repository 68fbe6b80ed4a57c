"""All asset checks of a pipeline: one module for each stage's checks. Add a check to its stage's `build()`.

Light checks run with each materialisation, and the health sensor evaluates them between runs; heavy ones run on a
schedule (tiers.py).
"""

import dagster as dg

from cdc_lake.pipeline.checks import dataset, lake, polling, raw, replica_identity, source, topic, watermark
from cdc_lake.pipeline.checks.light_check import LightCheck
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable


def build(pipeline: Pipeline) -> list[dg.AssetChecksDefinition]:
    """Return all checks of a pipeline."""
    return [
        *source.build(pipeline),
        *(check for table in pipeline.tables for check in topic.build(table)),
        *(check for table in pipeline.tables for check in _source_kind_checks(table)),
        *(check for table in pipeline.tables for check in raw.build(table)),
        *(check.definition for table in pipeline.tables for check in watermark.light(table)),
        *(check for table in pipeline.lake_tables for check in lake.build(table)),
        *dataset.build(pipeline),
    ]


def _source_kind_checks(table: PipelineTable) -> list[dg.AssetChecksDefinition]:
    """Return the checks that depend on `source.kind`."""
    if table.pipeline.polled:
        return polling.build(table)
    return [check.definition for check in replica_identity.light(table)]


def light(table: PipelineTable) -> list[LightCheck]:
    """Return a table's checks that can run without a Dagster run, which the health sensor evaluates."""
    own = (polling,) if table.pipeline.polled else (replica_identity, source)
    modules = (topic, raw, watermark, *own)
    return [check for module in modules for check in module.light(table)]
