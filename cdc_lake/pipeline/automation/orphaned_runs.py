"""Fail runs whose process was killed together with its parent (the code server or a command).

Dagster's run monitoring does not detect this for local processes. Such runs would stay active for hours: their sensor
would wait for them, and ten of them would block the run queue.

A process id is valid on one machine only: runs of other machines (run_host.py) are not changed.
"""

import time
from collections.abc import Iterator

import dagster as dg
import psutil

from cdc_lake.pipeline.automation import run_host

_WITH_PROCESS = [dg.DagsterRunStatus.STARTING, dg.DagsterRunStatus.STARTED, dg.DagsterRunStatus.CANCELING]
_START_TOLERANCE_SECONDS = 1.0
"""The precision of the start times of processes, in seconds."""
_HOST_TAG_SECONDS = 120.0
"""The time a process may take to tag its run with its host: it loads the definitions first, which takes about 5 s."""


def fail_orphans(instance: dg.DagsterInstance) -> list[str]:
    """Fail every active run whose process has ended; return their ids.

    Skips runs of other hosts and recently started runs without a host tag. Skips all runs if the run launcher does not
    start processes on the code server's machine.
    """
    if not isinstance(instance.run_launcher, dg.DefaultRunLauncher):
        return []
    failed = []
    for run in instance.get_runs(dg.RunsFilter(statuses=_WITH_PROCESS)):
        if (pid := _missing_process(instance, run)) is not None:
            instance.report_run_failed(
                run,
                f"The run's process (pid {pid}) does not exist any more. A sensor starts its runs again; start "
                "others again yourself.",
            )
            failed.append(run.run_id)
    return failed


def _missing_process(instance: dg.DagsterInstance, run: dg.DagsterRun) -> int | None:
    """Return the pid of an orphaned run's newest process; None if the run is not orphaned or may not be changed."""
    processes = list(_processes(instance, run.run_id))
    if not processes or any(_is_running(pid, at) for pid, at in processes):
        return None
    host = run.tags.get(run_host.TAG)
    if host is None and time.time() < max(at for _, at in processes) + _HOST_TAG_SECONDS:
        return None
    if host not in (None, run_host.this_host()):
        return None
    # Read the status after the process was found to be gone: a run that ended normally has reported its end by now.
    now = instance.get_run_by_id(run.run_id)
    return processes[-1][0] if now is not None and now.status in _WITH_PROCESS else None


def _processes(instance: dg.DagsterInstance, run_id: str) -> Iterator[tuple[int, float]]:
    """Yield the pid of each process of a run, and when the run reported it (seconds since 1970)."""
    for entry in instance.all_logs(run_id, of_type=dg.DagsterEventType.ENGINE_EVENT):
        pid = entry.get_dagster_event().engine_event_data.metadata.get("pid")
        if pid is not None and str(pid.value).isdecimal():
            yield int(str(pid.value)), entry.timestamp


def _is_running(pid: int, at: float) -> bool:
    """Return whether the process that had this pid at time `at` still runs; a later process may have the pid now."""
    try:
        process = psutil.Process(pid)
        return process.create_time() <= at + _START_TOLERANCE_SECONDS and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
