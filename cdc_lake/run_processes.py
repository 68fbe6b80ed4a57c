"""Start the processes of runs as forks of a process that has imported the modules of the definitions.

Dagster's code server starts them with multiprocessing's method `spawn`: a new interpreter imports all modules, which
takes most of the time before the run's first step. With the method `forkserver`, one process without threads imports
them once and is forked for each run. A run still loads the definitions itself, so that it sees changes of the YAML.
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
    # The import of cdc_lake.definitions does not import the other two modules: loading the definitions does.
    modules = ["cdc_lake.definitions", "cdc_lake.pipeline.component", "cdc_lake.profile_local"]
    multiprocessing.set_forkserver_preload(modules)
