"""Start the processes of runs as forks of a process that has imported the modules of the definitions.

Dagster's code server starts them with multiprocessing's method `spawn`: a new interpreter imports all modules, which
takes most of the time before the run's first step. With the method `forkserver`, one process without threads imports
them once, builds the definitions, and is forked for each run. A run after a change of the YAML builds them again.
"""

from __future__ import annotations

import multiprocessing
from typing import Any

FORK_RUNS = "CDC_LAKE_FORK_RUNS"
"""The environment variable with which `cdc-lake dev` enables this in its code server."""
SPARK_SERVER_OWNER = "CDC_LAKE_SPARK_SERVER_OWNER"
"""The environment variable with the id of the process `dagster dev`. The Spark server of its runs ends with it."""


def fork_runs() -> None:
    """Let the code server in this process fork its runs.

    Dagster has no setting for this. Its code server calls multiprocessing.get_context("spawn"), which returns the same
    object to all callers in a process, so that it is enough to replace that object's Process.
    """
    spawn: Any = multiprocessing.get_context("spawn")
    spawn.Process = multiprocessing.get_context("forkserver").Process
    # Opening Dagster's instance and the resources imports these. The process ignores a name that does not exist.
    opened = ("sqlite_storage", "runs.sqlite", "event_log.sqlite", "schedules.sqlite")
    modules = (
        "cdc_lake.prebuilt_definitions",
        "cdc_lake.profile_local",
        "dagster._grpc.impl",
        *(f"dagster._core.storage.{name}" for name in opened),
        "upath",
    )
    multiprocessing.set_forkserver_preload(list(modules))
