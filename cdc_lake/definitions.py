"""The code location: every pipeline below defs/, with the resources of the configured profile."""

import os
import warnings
from pathlib import Path

import dagster as dg

from cdc_lake.pipeline import checks as pipeline_checks
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.automation.sensors import queue_sensor
from cdc_lake.pipeline.automation.sensors.sensor_intervals import QUEUE
from cdc_lake.pipeline.exclusive_names import require_exclusive
from cdc_lake.pipeline.loading import load, names
from cdc_lake.profile import run_resources
from cdc_lake.run_processes import FORK_RUNS, fork_runs

if os.environ.get(FORK_RUNS):
    fork_runs()


@dg.definitions
def defs() -> dg.Definitions:
    """Return the definitions of all pipelines. A run's steps run in one process, to share one Spark session."""
    pipelines = [load(name) for name in names()]
    require_exclusive(pipelines)
    resources = run_resources()
    folder = Path(__file__).parent / "defs"
    # load_from_defs_folder also builds the JSON schema of every installed component type, which takes half a second in
    # each process, and each run that a sensor launches is a process.
    tree = dg.ComponentTree.for_project(folder)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # by Dagster's components; load_from_defs_folder ignores it too
        loaded = tree.build_defs(folder)
    queue_sensors = []
    if QUEUE in resources:
        jobs = {job.name: job for job in loaded.jobs or ()}
        queue_sensors.append(
            queue_sensor.build(
                [
                    (pipeline, Jobs(pipeline, pipeline_checks.build(pipeline)))
                    for pipeline in pipelines
                    if pipeline.spec.mode == "triggered"
                ],
                jobs,
            )
        )
    own = dg.Definitions(
        sensors=queue_sensors, resources=resources, executor=dg.in_process_executor, component_tree=tree
    )
    return dg.Definitions.merge(loaded, own)
