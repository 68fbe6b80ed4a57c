"""Datasets and dashboards follow the lake in a run of their own, so that they never delay the next commit.

The lake's newest commits are metadata of each dataset and dashboard. Where a table has another one by now, one run
builds all of them again; what is committed meanwhile is left to the next run.

QuickSight takes so many ingestions a day: a run that comes too soon after the last one notes when a dashboard's rows
may be read (`due`). Without this sensor they would wait for the next change of the source.
"""

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import PurePath

import dagster as dg

from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.contract.objects.store import ObjectStore as Bucket
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import standard_metadata
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.automation.run_requests import Tick, launch
from cdc_lake.pipeline.checks import upstream_checks
from cdc_lake.pipeline.naming import Flow, location
from resources.object_store import ObjectStore

DUE = "due"
"""Of a dashboard's note: when its rows may be read, in seconds since 1970."""
COMMITS = "lake_commits"
"""The metadata of a dataset or dashboard that names the lake's commits it was built over."""
_EVERY_SECONDS = 15


def build(flow: Flow, jobs: Jobs, judged: Sequence[dg.AssetCheckKey], seconds: int) -> dg.SensorDefinition:
    """The sensor of a pipeline's datasets and dashboards, which launches nothing while one of `judged` has failed."""

    @dg.sensor(
        name=f"{flow.name}_refresh",
        job=jobs.definitions[jobs.refresh.name],
        minimum_interval_seconds=max(_EVERY_SECONDS, seconds),
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Builds datasets and dashboards after the lake changed; reads the rows that a dashboard put off.",
    )
    def refresh(context: dg.SensorEvaluationContext, store: ObjectStore) -> Tick:
        bucket = location(store).store()
        commits = table_progress.lake_commits(bucket, flow)
        if not commits:
            return dg.SkipReason("nothing is applied to a lake table yet")
        built = {key: standard_metadata.last(context.instance, key).get(COMMITS) for key in jobs.refresh.assets}
        if any(value is None or value.value != commits for value in built.values()):
            part, position = jobs.refresh, f"refresh:{_short(commits)}"
        elif ready := _ready(flow, bucket):
            part = jobs.refresh.only(*(flow.key("dashboard", name) for name in ready))
            position = "read:" + ",".join(f"{name}@{due:.0f}" for name, due in ready.items())
        else:
            return dg.SkipReason("datasets and dashboards are built over the newest commits")
        if faults := upstream_checks.failed(context.instance, judged):
            return dg.SkipReason(f"not built: {faults[0]}")
        return launch(context, part, position)

    return refresh


def _ready(flow: Flow, bucket: Bucket) -> dict[str, float]:
    """The dashboards whose rows may be read by now, and since when."""
    names_ = sorted(PurePath(file).stem for file in flow.spec.dashboards)
    noted = {
        name: stage_state.read(bucket, object_names.stage_state_key(flow.name, "dashboard", name)).get(DUE)
        for name in names_
    }
    return {name: float(due) for name, due in noted.items() if due is not None and float(due) <= time.time()}


def _short(commits: dict[str, str]) -> str:
    return hashlib.sha256(json.dumps(commits, sort_keys=True).encode()).hexdigest()[:12]
