"""The data tests: one module a subject, each of which can fail.

Here: putting a pipeline's checks together.
"""

import dagster as dg

from cdc_lake.pipeline.checks import content, dataset, identity, landing, source, streaming, watermark
from cdc_lake.pipeline.flow import Flow


def build(flow: Flow) -> list[dg.AssetChecksDefinition]:
    """All checks of a pipeline."""
    return [
        *source.build(flow),
        *(check for table in flow.tables for check in streaming.build(table)),
        *(check.definition for table in flow.tables for check in identity.light(table)),
        *(check for table in flow.tables for check in landing.build(table)),
        *(check.definition for table in flow.tables for check in watermark.light(table)),
        *(check for table in flow.tables for check in content.build(table)),
        *dataset.build(flow),
    ]
