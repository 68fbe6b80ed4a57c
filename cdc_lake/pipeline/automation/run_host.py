"""The machine that a run's process is on, as a tag of the run: a process id means nothing anywhere else.

The run's own process sets the tag as soon as its first resource is created: which code server a run is launched in is
not known before. Not here: judging runs by it (pipeline/automation/orphaned_runs.py).
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import dagster as dg

TAG = "cdc_lake/host"
VARIABLE = "CDC_LAKE_RUN_HOST"
_PROCESSES = Path("/proc/self/ns/pid")


def this_host() -> str:
    """Return the name of the machine, with its process namespace where there is one: containers can share a name.

    CDC_LAKE_RUN_HOST replaces it where one code server takes the place of another under a new name, and the runs of
    the one before have ended with it.
    """
    named = os.environ.get(VARIABLE)
    if named:
        return named
    namespace = str(_PROCESSES.readlink()) if _PROCESSES.is_symlink() else ""
    return f"{socket.gethostname()} {namespace}".strip()


_tagged: set[str] = set()


def tag(context: dg.InitResourceContext) -> None:
    """Tag the run of a resource that is created, once in its process; nothing where there is no run."""
    run, instance = context.run, context.instance
    if run is not None and instance is not None and run.run_id not in _tagged:
        instance.add_run_tags(run.run_id, {TAG: this_host()})
        _tagged.add(run.run_id)
