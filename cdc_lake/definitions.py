"""The code location: every pipeline below defs/, with the resources of the configured profile."""

import os
import warnings
from collections.abc import Mapping
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

FOLDER = Path(__file__).parent / "defs"

if os.environ.get(FORK_RUNS):
    fork_runs()


_prebuilt: tuple[Mapping[str, object], dg.Definitions] | None = None


@dg.definitions
def defs() -> dg.Definitions:
    """Return the definitions of all pipelines. A run's steps run in one process, to share one Spark session."""
    if _prebuilt is not None and _prebuilt[0] == _files():
        return _prebuilt[1]
    return _build()


def prebuild() -> None:
    """Build the definitions. defs() returns them in this process and its forks until a file below defs/ changes."""
    global _prebuilt  # noqa: PLW0603 - a fork has the module, and Dagster takes the definitions from there
    files, definitions = _files(), _build()
    definitions.get_repository_def()  # the definitions keep it
    _prebuilt = files, definitions


def _files() -> Mapping[str, object]:
    """Return size and time of change of each file below defs/."""
    found = ((path, path.stat()) for path in FOLDER.rglob("*"))
    return {str(path): (status.st_size, status.st_mtime_ns) for path, status in found}


def _build() -> dg.Definitions:
    pipelines = [load(name) for name in names()]
    require_exclusive(pipelines)
    resources = run_resources()
    # load_from_defs_folder also builds the JSON schema of every installed component type, which takes half a second in
    # each process, and each run that a sensor launches is a process.
    tree = dg.ComponentTree.for_project(FOLDER)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.BetaWarning)  # by Dagster's components; load_from_defs_folder ignores it too
        loaded = tree.build_defs(FOLDER)
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
