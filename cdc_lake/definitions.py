"""The code location: every pipeline below defs/, with the resources of the profile that is chosen."""

import warnings
from pathlib import Path

import dagster as dg

from cdc_lake.pipeline.automation import queue_sensor
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.automation.sensor_intervals import QUEUE
from cdc_lake.pipeline.checks import all_checks
from cdc_lake.pipeline.exclusive_names import require_apart
from cdc_lake.pipeline.loading import load, names
from cdc_lake.profile import bound


@dg.definitions
def defs() -> dg.Definitions:
    """All pipelines. Steps run in one process: they share one Spark session."""
    flows = [load(name) for name in names()]
    require_apart(flows)
    resources = bound()
    folder = Path(__file__).parent / "defs"
    # What load_from_defs_folder does besides, JSON of every component type that is installed, takes each process half a
    # second, and each run that a sensor launches is a process.
    tree = dg.ComponentTree.for_project(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # as that loader does: of Dagster's own components
        pipelines = tree.build_defs(folder)
    hearing = []
    if QUEUE in resources:
        jobs = {job.name: job for job in pipelines.jobs or ()}
        hearing.append(queue_sensor.build([(flow, Jobs(flow, all_checks.build(flow))) for flow in flows], jobs))
    own = dg.Definitions(sensors=hearing, resources=resources, executor=dg.in_process_executor, component_tree=tree)
    return dg.Definitions.merge(pipelines, own)
