"""Request runs for sensors: one at a time for each subject, and after failures with growing pauses.

A subject is what a run processes: a table, or everything that a sensor observes. A run's tags contain the position of
each of its subjects in the data.
"""

import hashlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Protocol

import dagster as dg

from cdc_lake.pipeline.automation.orphaned_runs import fail_orphans

BACKOFF_SECONDS = (5, 15, 60, 300)
"""The pauses between attempts; the last one is used for all further attempts."""
CONTINUOUS_LONGEST_SECONDS = 60
"""The longest pause in continuous mode: after an outage of some minutes, five more without new rows are too many."""
SEPARATE_RUN_AFTER = 2
"""The number of failed runs for a position after which a subject gets a separate run, so that others do not wait."""
_ACTIVE = [
    dg.DagsterRunStatus.QUEUED,
    dg.DagsterRunStatus.NOT_STARTED,
    dg.DagsterRunStatus.STARTING,
    dg.DagsterRunStatus.STARTED,
    dg.DagsterRunStatus.CANCELING,
]
_OUTCOME = {dg.DagsterRunStatus.FAILURE: "failed", dg.DagsterRunStatus.CANCELED: "was cancelled"}
_EXAMINED_RUNS = 20
"""The newest runs among which launch() counts failures; the others are deletions of replaced builds, for example."""
_SENSOR, _POSITION, _SUBJECT = "cdc_lake/sensor", "cdc_lake_position", "cdc_lake_subject"


class Job(Protocol):
    """A job, or a part of it, of a pipeline."""

    @property
    def pipeline(self) -> str:
        """The pipeline's name."""

    def request(self, run_key: str, tags: dict[str, str]) -> dg.RunRequest:
        """Return a request for a run."""


Tick = dg.SensorResult | dg.SkipReason
Pending = str | dg.SkipReason
"""The position of the run that a subject needs, or the reason why no run is needed."""


@dataclass(frozen=True)
class RunRequests:
    """The requests of a tick, and for each subject without a request the reason."""

    requests: Sequence[dg.RunRequest]
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def tick(self) -> Tick:
        """The result of a sensor's tick."""
        if self.requests:
            return dg.SensorResult(run_requests=self.requests)
        return dg.SkipReason(describe_skipped(self.skipped))


def describe_skipped(skipped: Mapping[str, str]) -> str:
    """Return why no run is requested for these subjects: each reason once, with its subjects before it.

    If there is only one subject, it is not named.
    """
    if len(skipped) == 1:
        return next(iter(skipped.values()))
    by_reason: dict[str, list[str]] = {}
    for subject, reason in skipped.items():
        by_reason.setdefault(reason, []).append(subject)
    return "; ".join(f"{', '.join(subjects)}: {reason}" for reason, subjects in by_reason.items())


def backoff(attempts: int, longest: int = BACKOFF_SECONDS[-1]) -> int:
    """Return the seconds to wait after this number of attempts, which is 1 or more; `longest` is the last pause."""
    return (*BACKOFF_SECONDS[:-1], longest)[min(attempts, len(BACKOFF_SECONDS)) - 1]


def launch(
    context: dg.SensorEvaluationContext,
    job: Job,
    position: str,
    longest_pause: int = BACKOFF_SECONDS[-1],
    *,
    counting: Sequence[str] = (),
) -> Tick:
    """Request a run of a job, or of a part of it, for a position in the data.

    Requests no run while another run of the sensor is active. A run whose process has ended counts as failed. A failed
    run is requested again for the same position, after a growing pause of at most `longest_pause` seconds. The pause
    also grows with failures for other positions that begin with a text in `counting`, until a run succeeds.
    """
    name = context.sensor_name
    if counting:
        fail_orphans(context.instance)
        if (wait := _pause(context, job.pipeline, counting)) is not None:
            return wait
    return request(context, {name: position}, lambda _: job, name, job.pipeline, longest_pause=longest_pause).tick


def request(
    context: dg.SensorEvaluationContext,
    pending: Mapping[str, Pending],
    part: Callable[[Sequence[str]], Job],
    sensor: str,
    pipeline: str,
    *,
    can_wait: Mapping[str, str] | None = None,
    slow: Collection[str] = (),
    longest_pause: int = BACKOFF_SECONDS[-1],
) -> RunRequests:
    """Request a run for all subjects of a pipeline that need one; `part` returns the job's part for subjects.

    A subject is skipped while a run that includes it is active, since that run holds its leases or does its work, and
    after a failed run for the same position until a growing pause has passed. The runs are tagged as those of `sensor`.

    A run ends when all of its subjects are done. The subjects in `slow` are therefore in a separate run, and each
    subject that failed SEPARATE_RUN_AFTER times has its own run. `can_wait` has the positions of subjects that need no
    run yet, but join the run of the others if there is one.
    """
    fail_orphans(context.instance)
    runs: dict[str, dict[str, tuple[str, int]]] = {}
    skipped: dict[str, str] = {}
    for subject, position in [*pending.items(), *(can_wait or {}).items()]:
        found = (
            position
            if isinstance(position, dg.SkipReason)
            else _attempt(context, pipeline, subject, position, longest_pause)
        )
        if isinstance(found, dg.SkipReason):
            skipped.setdefault(subject, found.skip_message or "")
            continue
        run = f"alone: {subject}" if found >= SEPARATE_RUN_AFTER else "slow" if subject in slow else "all others"
        if run in runs or subject not in skipped:
            runs.setdefault(run, {})[subject] = (str(position), found)
            skipped.pop(subject, None)
    return RunRequests([_run(part, sensor, pipeline, subjects) for subjects in runs.values()], skipped)


def _run(
    part: Callable[[Sequence[str]], Job], sensor: str, pipeline: str, subjects: Mapping[str, tuple[str, int]]
) -> dg.RunRequest:
    """Return the request of one run for subjects with their positions and numbers of failed runs."""
    tags = {_SENSOR: sensor}
    for subject, (position, _) in subjects.items():
        tags |= _tags(pipeline, subject, position)
    # Dagster launches each run key once, so the attempt is part of the key.
    keys = [f"{position}:{attempt}" for position, attempt in subjects.values()]
    key = keys[0] if len(keys) == 1 else hashlib.sha256("\n".join(keys).encode()).hexdigest()
    return part(tuple(subjects)).request(key, tags)


def is_sensor_run(run: dg.DagsterRun) -> bool:
    """Return whether a sensor requested the run, and not a person or another program."""
    return _SENSOR in run.tags


def newest_success(context: dg.SensorEvaluationContext) -> dg.RunRecord | None:
    """Return the sensor's newest successful run."""
    tags = {_SENSOR: context.sensor_name}
    succeeded = dg.RunsFilter(tags=tags, statuses=[dg.DagsterRunStatus.SUCCESS])
    return next(iter(context.instance.get_run_records(succeeded, limit=1)), None)


def _tags(pipeline: str, subject: str, position: str | None = None) -> dict[str, str]:
    found = {f"{_SUBJECT}/{subject}": pipeline}
    return found if position is None else {**found, f"{_POSITION}/{subject}": position}


def _attempt(
    context: dg.SensorEvaluationContext, pipeline: str, subject: str, position: str, longest_pause: int
) -> int | dg.SkipReason:
    """Return the number of failed runs for the position, or the reason why no run is launched now."""
    active = dg.RunsFilter(tags=_tags(pipeline, subject), statuses=_ACTIVE)
    if busy := context.instance.get_runs(active, limit=1):
        return dg.SkipReason(f"run {busy[0].run_id} of {_whose(context, busy[0])} is active")
    ended = dg.RunsFilter(tags=_tags(pipeline, subject, position), statuses=list(_OUTCOME))
    failed = context.instance.get_run_records(ended)  # newest first
    return _wait(context, failed, longest_pause) or len(failed)


def _pause(context: dg.SensorEvaluationContext, pipeline: str, counting: Sequence[str]) -> dg.SkipReason | None:
    """Return the reason to wait after the sensor's failed runs since its newest success, None without one.

    Only runs are counted whose position begins with a text in `counting`.
    """
    name = context.sensor_name
    ended = dg.RunsFilter(tags=_tags(pipeline, name), statuses=[*_OUTCOME, dg.DagsterRunStatus.SUCCESS])
    counted = (
        record
        for record in context.instance.get_run_records(ended, limit=_EXAMINED_RUNS)
        if record.dagster_run.tags[f"{_POSITION}/{name}"].startswith(tuple(counting))
    )
    return _wait(context, list(takewhile(lambda record: record.dagster_run.status in _OUTCOME, counted)))


def _wait(
    context: dg.SensorEvaluationContext, failed: Sequence[dg.RunRecord], longest_pause: int = BACKOFF_SECONDS[-1]
) -> dg.SkipReason | None:
    """Return the reason to wait after these failed runs, newest first; None if the pause has passed."""
    if not failed or failed[0].end_time is None:
        return None
    wait = failed[0].end_time + backoff(len(failed), longest_pause) - time.time()
    if wait <= 0:
        return None
    run = failed[0].dagster_run
    return dg.SkipReason(
        f"run {run.run_id} of {_whose(context, run)} {_OUTCOME[run.status]}; the next run is in {wait:.0f} s"
    )


def _whose(context: dg.SensorEvaluationContext, run: dg.DagsterRun) -> str:
    """Return whose run it is: this sensor's, or another one's, by name."""
    launched_by = run.tags[_SENSOR]
    return "this sensor" if launched_by == context.sensor_name else launched_by
