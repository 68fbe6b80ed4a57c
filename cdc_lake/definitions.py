"""The code location: every pipeline below defs/, with the resources of the profile that is chosen."""

from pathlib import Path

import dagster as dg

from cdc_lake.pipeline.apart import require_apart
from cdc_lake.pipeline.load import load, names
from cdc_lake.profile import bound


@dg.definitions
def defs() -> dg.Definitions:
    """All pipelines. Steps run in one process: they share one Spark session."""
    require_apart(load(name) for name in names())
    pipelines = dg.load_from_defs_folder(path_within_project=Path(__file__).parent / "defs")
    return dg.Definitions.merge(pipelines, dg.Definitions(resources=bound(), executor=dg.in_process_executor))
