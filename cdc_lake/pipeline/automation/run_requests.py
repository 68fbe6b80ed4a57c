"""Launching a run for a sensor: one at a time, and again, ever later, after a failure."""

import time
from collections.abc import Sequence

import dagster as dg

from cdc_lake.pipeline.automation.jobs import Job
from cdc_lake.pipeline.automation.orphaned_runs import fail_orphans

BACKOFF_SECONDS = (5, 15, 60, 300)
"""Between one attempt and the next; the last one from then on."""
_UNDER_WAY = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_IN_VAIN = [dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]
_SENSOR, _POSITION = "cdc_lake/sensor", "cdc_lake/position"

Tick = dg.SensorResult | dg.SkipReason


def pause(attempts: int) -> int:
    """Seconds to wait after so many attempts, 1 or more."""
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

    One run of a sensor at a time, and none beside a run of the sensors in `excluding`: it would only wait for the
    lease or find nothing; a run whose process is gone has failed. A run that failed is requested again although
    nothing new has come, after a pause that grows. With `sensor` it counts as that one's run.
    """
    own = sensor or context.sensor_name
    fail_orphans(context.instance)
    busy = context.instance.get_runs(dg.RunsFilter(tags={_SENSOR: [own, *excluding]}, statuses=_UNDER_WAY), limit=1)
    if busy:
        by = busy[0].tags[_SENSOR]
        whose = "this sensor" if by == context.sensor_name else by
        return dg.SkipReason(f"run {busy[0].run_id} of {whose} is under way")
    tags = {_SENSOR: own, _POSITION: position}
    failed = context.instance.get_run_records(dg.RunsFilter(tags=tags, statuses=_IN_VAIN))
    wait = _wait(failed, time.time())
    if wait > 0:
        return dg.SkipReason(f"run {failed[0].dagster_run.run_id} of this sensor failed; the next one in {wait:.0f} s")
    # Dagster launches a run key once: the attempt is part of it.
    return dg.SensorResult(run_requests=[job.request(f"{position}:{len(failed)}", tags)])


def newest_success(context: dg.SensorEvaluationContext) -> dg.RunRecord | None:
    """Return the newest of the sensor's runs that succeeded."""
    tags = {_SENSOR: context.sensor_name}
    succeeded = dg.RunsFilter(tags=tags, statuses=[dg.DagsterRunStatus.SUCCESS])
    return next(iter(context.instance.get_run_records(succeeded, limit=1)), None)


def _wait(failed: Sequence[dg.RunRecord], now: float) -> float:
    """Seconds until the next attempt; runs that have ended, newest first."""
    if not failed or failed[0].end_time is None:
        return 0.0
    return failed[0].end_time + pause(len(failed)) - now
