"""The run tag that contains the machine of the run's process; orphaned_runs.py reads it.

The run's own process sets the tag when its first resource is created: the machine is not known before that.
"""

from __future__ import annotations

import os
import socket
from pathlib import Path

import dagster as dg

TAG = "cdc_lake/host"
VARIABLE = "CDC_LAKE_RUN_HOST"
_PID_NAMESPACE = Path("/proc/self/ns/pid")


def this_host() -> str:
    """Return the name of the machine, with its process namespace if there is one: containers can share a name.

    CDC_LAKE_RUN_HOST overrides it. Set it for a code server whose successor has another host name, if the runs of a
    code server end with that server.
    """
    configured = os.environ.get(VARIABLE)
    if configured:
        return configured
    namespace = str(_PID_NAMESPACE.readlink()) if _PID_NAMESPACE.is_symlink() else ""
    return f"{socket.gethostname()} {namespace}".strip()


_tagged: set[str] = set()


def tag(context: dg.InitResourceContext) -> None:
    """Tag the run for which a resource is created, once in a process; do nothing outside of a run."""
    run, instance = context.run, context.instance
    if run is not None and instance is not None and run.run_id not in _tagged:
        instance.add_run_tags(run.run_id, {TAG: this_host()})
        _tagged.add(run.run_id)
