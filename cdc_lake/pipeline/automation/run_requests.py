"""Request runs for sensors: one at a time for each subject, and after failures with exponential backoff.

A subject is what a run works on: a table, or all that a sensor watches. A run's tags contain the position of each of
its subjects in the data.
"""

import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

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
_SENSOR, _POSITION, _SUBJECT = "cdc_lake/sensor", "cdc_lake_position", "cdc_lake_subject"

Tick = dg.SensorResult | dg.SkipReason
Pending = str | dg.SkipReason
"""The position of the run that a subject needs; or the reason why no run is needed."""


@dataclass(frozen=True)
class Requested:
    """The request of a tick, if there is one, and why each of the other subjects is not in it."""

    request: dg.RunRequest | None
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def tick(self) -> Tick:
        """The result of a sensor's tick."""
        if self.request is not None:
            return dg.SensorResult(run_requests=[self.request])
        return dg.SkipReason(described(self.skipped))


def described(skipped: Mapping[str, str]) -> str:
    """Return why no run is requested for these subjects: each reason once, after the subjects that it is true of.

    A single subject is not named.
    """
    if len(skipped) == 1:
        return next(iter(skipped.values()))
    by_reason: dict[str, list[str]] = {}
    for subject, reason in skipped.items():
        by_reason.setdefault(reason, []).append(subject)
    return "; ".join(f"{', '.join(subjects)}: {reason}" for reason, subjects in by_reason.items())


def backoff(attempts: int) -> int:
    """Return the seconds to wait after this number of attempts, which is 1 or more."""
    return BACKOFF_SECONDS[min(attempts, len(BACKOFF_SECONDS)) - 1]


def launch(context: dg.SensorEvaluationContext, job: Job, position: str) -> Tick:
    """Request a run of a job, or of a part of it, for a position in the data.

    Requests no run while another run of the sensor is active. A run whose process is gone counts as failed. A failed
    run is requested again for the same position, after a growing pause.
    """
    return request(context, {context.sensor_name: position}, lambda _: job, context.sensor_name, job.pipeline).tick


def request(
    context: dg.SensorEvaluationContext,
    pending: Mapping[str, Pending],
    part: Callable[[Sequence[str]], Job],
    sensor: str,
    pipeline: str,
) -> Requested:
    """Request one run for all subjects of a pipeline that need one; `part` returns the job's part for subjects.

    A subject is left out while a run that includes it is active, which would hold its leases or do its work, and
    after a failed run for the same position until a growing pause has passed. The run counts as one of `sensor`.
    """
    fail_orphans(context.instance)
    attempts: dict[str, int] = {}
    skipped: dict[str, str] = {}
    for subject, position in pending.items():
        found = position if isinstance(position, dg.SkipReason) else _attempt(context, pipeline, subject, position)
        if isinstance(found, dg.SkipReason):
            skipped[subject] = found.skip_message or ""
        else:
            attempts[subject] = found
    if not attempts:
        return Requested(None, skipped)
    tags = {_SENSOR: sensor}
    for subject in attempts:
        tags |= _tags(pipeline, subject, str(pending[subject]))
    # Dagster launches each run key once, so the attempt is part of the key.
    keys = [f"{pending[subject]}:{attempt}" for subject, attempt in attempts.items()]
    key = keys[0] if len(keys) == 1 else hashlib.sha256("\n".join(keys).encode()).hexdigest()
    return Requested(part(tuple(attempts)).request(key, tags), skipped)


def newest_success(context: dg.SensorEvaluationContext) -> dg.RunRecord | None:
    """Return the sensor's newest successful run."""
    tags = {_SENSOR: context.sensor_name}
    succeeded = dg.RunsFilter(tags=tags, statuses=[dg.DagsterRunStatus.SUCCESS])
    return next(iter(context.instance.get_run_records(succeeded, limit=1)), None)


def _tags(pipeline: str, subject: str, position: str | None = None) -> dict[str, str]:
    found = {f"{_SUBJECT}/{subject}": pipeline}
    return found if position is None else {**found, f"{_POSITION}/{subject}": position}


def _attempt(context: dg.SensorEvaluationContext, pipeline: str, subject: str, position: str) -> int | dg.SkipReason:
    """Return the number of failed runs for the position, or the reason why no run is launched now."""
    active = dg.RunsFilter(tags=_tags(pipeline, subject), statuses=_ACTIVE)
    if busy := context.instance.get_runs(active, limit=1):
        launched_by = busy[0].tags[_SENSOR]
        whose = "this sensor" if launched_by == context.sensor_name else launched_by
        return dg.SkipReason(f"run {busy[0].run_id} of {whose} is active")
    ended = dg.RunsFilter(tags=_tags(pipeline, subject, position), statuses=_FAILED)
    failed = context.instance.get_run_records(ended)  # newest first
    if failed and failed[0].end_time is not None:
        wait = failed[0].end_time + backoff(len(failed)) - time.time()
        if wait > 0:
            run = failed[0].dagster_run.run_id
            return dg.SkipReason(f"run {run} of this sensor failed; the next one in {wait:.0f} s")
    return len(failed)
