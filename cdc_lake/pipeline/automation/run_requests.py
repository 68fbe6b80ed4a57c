"""Request runs for sensors: one at a time, and after failures with exponential backoff."""

import time
from collections.abc import Sequence

import dagster as dg

from cdc_lake.pipeline.automation.jobs import Job
from cdc_lake.pipeline.automation.orphaned_runs import fail_orphans

BACKOFF_SECONDS = (5, 15, 60, 300)
"""The pauses between attempts; further attempts use the last one."""
_ACTIVE = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_FAILED = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
_SENSOR, _POSITION = "cdc_lake/sensor", "cdc_lake/position"

Tick = dg.SensorResult | dg.SkipReason


def backoff(attempts: int) -> int:
    """Return the seconds to wait after this number of attempts, which is 1 or more."""
    return BACKOFF_SECONDS[min(attempts, len(BACKOFF_SECONDS)) - 1]


def launch(
    context: dg.SensorEvaluationContext,
    job: Job,
    position: str,
    *,
    sensor: str | None = None,
    excluding: Sequence[str] = (),
) -> Tick:
    """Request a run of a job, or of a part of it, for a position in the data.

    Requests no run while another run of the sensor, or of a sensor in `excluding`, is active: it would only wait for
    the lease, or find nothing to do. A run whose process is gone counts as failed. A failed run is requested again for
    the same position, after a growing pause. With `sensor`, the run counts as a run of that sensor.
    """
    own = sensor or context.sensor_name
    fail_orphans(context.instance)
    busy = context.instance.get_runs(dg.RunsFilter(tags={_SENSOR: [own, *excluding]}, statuses=_ACTIVE), limit=1)
    if busy:
        launched_by = busy[0].tags[_SENSOR]
        whose = "this sensor" if launched_by == context.sensor_name else launched_by
        return dg.SkipReason(f"run {busy[0].run_id} of {whose} is active")
    tags = {_SENSOR: own, _POSITION: position}
    failed = context.instance.get_run_records(dg.RunsFilter(tags=tags, statuses=_FAILED))
    wait = _wait(failed, time.time())
    if wait > 0:
        return dg.SkipReason(f"run {failed[0].dagster_run.run_id} of this sensor failed; the next one in {wait:.0f} s")
    # Dagster launches each run key once, so the attempt is part of the key.
    return dg.SensorResult(run_requests=[job.request(f"{position}:{len(failed)}", tags)])


def newest_success(context: dg.SensorEvaluationContext) -> dg.RunRecord | None:
    """Return the sensor's newest successful run."""
    tags = {_SENSOR: context.sensor_name}
    succeeded = dg.RunsFilter(tags=tags, statuses=[dg.DagsterRunStatus.SUCCESS])
    return next(iter(context.instance.get_run_records(succeeded, limit=1)), None)


def _wait(failed: Sequence[dg.RunRecord], now: float) -> float:
    """Return the seconds until the next attempt; `failed` contains the ended runs, newest first."""
    if not failed or failed[0].end_time is None:
        return 0.0
    return failed[0].end_time + backoff(len(failed)) - now
