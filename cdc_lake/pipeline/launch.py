"""Launching a run for a sensor: one at a time, and again, ever later, after a failure.

Here: what keeps a sensor from launching, and the waits between attempts. Not here: when there is something to do
(sensors.py).
"""

import time
from collections.abc import Sequence

import dagster as dg

from cdc_lake.pipeline.orphans import fail_orphans

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
    pipeline: str,
    position: str,
    sensor: str | None = None,
    assets: Sequence[dg.AssetKey] | None = None,
) -> Tick:
    """Request a run of the sensor's target for a position in the data; of `assets`, where a sensor has several targets.

    One run at a time: a further one would only wait for the lease or find nothing; one whose process is gone has
    failed. A run that failed is requested again although nothing new has come, after a pause that grows. With `sensor`
    it counts as that one's: runs of both are one row.
    """
    tags = {_SENSOR: sensor or context.sensor_name}
    fail_orphans(context.instance)
    busy = context.instance.get_runs(dg.RunsFilter(tags=tags, statuses=_UNDER_WAY), limit=1)
    if busy:
        return dg.SkipReason(f"run {busy[0].run_id} of this sensor is under way")
    tags |= {_POSITION: position, "cdc_lake/pipeline": pipeline}
    failed = context.instance.get_run_records(dg.RunsFilter(tags=tags, statuses=_IN_VAIN))
    wait = _wait(failed, time.time())
    if wait > 0:
        return dg.SkipReason(f"run {failed[0].dagster_run.run_id} of this sensor failed; the next one in {wait:.0f} s")
    # Dagster launches a run key once: the attempt is part of it.
    request = dg.RunRequest(run_key=f"{position}:{len(failed)}", tags=tags, asset_selection=assets)
    return dg.SensorResult(run_requests=[request])


def carry_on(context: dg.SensorEvaluationContext, pipeline: str, nothing_due: dg.SkipReason) -> Tick:
    """What a sensor does that finds nothing due: where its newest run failed, that is requested again.

    A run can fail after the commit that made its position no longer due: catalog, dataset or dashboard still lack what
    it was to bring them.
    """
    fail_orphans(context.instance)
    newest = context.instance.get_runs(dg.RunsFilter(tags={_SENSOR: context.sensor_name}), limit=1)
    if not newest or newest[0].status not in _IN_VAIN:
        return nothing_due
    return launch(context, pipeline, newest[0].tags[_POSITION])


def _wait(failed: Sequence[dg.RunRecord], now: float) -> float:
    """Seconds until the next attempt; runs that have ended, newest first."""
    if not failed or failed[0].end_time is None:
        return 0.0
    return failed[0].end_time + pause(len(failed)) - now
