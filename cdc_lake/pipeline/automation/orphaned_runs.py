"""Runs whose process is gone: killed together with whoever watched it, the code server or a command line.

Dagster's run monitoring can't see that for processes of this machine. Such runs would stay under way for hours: their
sensor would wait for them, and ten of them keep every other run in the queue.

A process id means something on one machine only: runs of other machines (run_host.py) are left alone.
"""

import time
from collections.abc import Iterator

import dagster as dg
import psutil

from cdc_lake.pipeline.automation import run_host

_IN_A_PROCESS = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
_SECONDS = 1.0
"""How exact the start times of processes are."""
_HOST_SECONDS = 120.0
"""How long a process may take to tag its run with its host: it loads the definitions first, which takes about 5 s."""


def fail_orphans(instance: dg.DagsterInstance) -> list[str]:
    """Report as failed every run that is under way although the process that it said it runs in has ended; their ids.

    Runs of other hosts are left alone, and those that have not said where they run, for as long as they may take to
    say it; all of them where runs are not processes of a code server's machine.
    """
    if not isinstance(instance.run_launcher, dg.DefaultRunLauncher):
        return []
    orphans = [run for run in instance.get_runs(dg.RunsFilter(statuses=_IN_A_PROCESS)) if _is_orphan(instance, run)]
    for run in orphans:
        instance.report_run_failed(run, "The run's process is gone, and whoever watched it was ended too.")
    return [run.run_id for run in orphans]


def _is_orphan(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    said = list(_processes(instance, run.run_id))
    if not said or any(_runs(pid, at) for pid, at in said):
        return False
    host = run.tags.get(run_host.TAG)
    if host is None and time.time() < max(at for _, at in said) + _HOST_SECONDS:
        return False
    if host not in (None, run_host.this_host()):
        return False
    # Asked after its process was found gone: what ended in good order has reported that before.
    now = instance.get_run_by_id(run.run_id)
    return now is not None and now.status in _IN_A_PROCESS


def _processes(instance: dg.DagsterInstance, run_id: str) -> Iterator[tuple[int, float]]:
    """The pid of each process of a run, and when it said so (seconds since 1970)."""
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        pid = entry.get_dagster_event().engine_event_data.metadata.get("pid")
        if pid is not None and str(pid.value).isdecimal():
            yield int(str(pid.value)), entry.timestamp


def _runs(pid: int, at: float) -> bool:
    """Whether the process that had this pid then is there still; a later one may have it now."""
    try:
        process = psutil.Process(pid)
        return process.create_time() <= at + _SECONDS and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
