"""The sensor that rebuilds datasets and dashboards after lake commits, in a separate run that does not delay commits.

The metadata of each dataset and dashboard contains the lake commits that it was built over. If a table has a newer
commit, one run rebuilds all of them; commits during that run are left to the next run.

QuickSight limits the number of ingestions a day. A run that is too soon after the last ingestion postpones the next
one: it stores the time from which the ingestion may run (`INGESTION_ALLOWED_AT`). This sensor launches a run at that
time; otherwise the rows would wait for the next change.

The sensor also launches a run that deletes the replaced builds of a refined table once their retention has ended
(RETENTION_SECONDS in cdc_lake/pipeline/assets/refined_table.py), because otherwise they would remain until the next
change.
"""

import time
from collections.abc import Sequence
from pathlib import PurePath

import dagster as dg

from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.contract.objects.store import ObjectStore as Bucket
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets import refined_table, standard_metadata
from cdc_lake.pipeline.assets.standard_metadata import LAKE_COMMITS
from cdc_lake.pipeline.automation.jobs import Jobs
from cdc_lake.pipeline.automation.run_requests import Tick, launch
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import upstream_checks
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.short_digest import short_digest
from resources.object_store import ObjectStore

INGESTION_ALLOWED_AT = "due"
"""The field of a dashboard's stored state: the earliest time of its postponed ingestion, in seconds since 1970."""
_BUILDS = ("refresh:", "datasets:", "ingest:")
"""The positions of runs that build. With changes at the source, a run that fails has another position each time."""
_MIN_INTERVAL_SECONDS = 15


def build(
    pipeline: Pipeline,
    jobs: Jobs,
    dataset_checks: Sequence[dg.AssetCheckKey],
    dashboard_checks: Sequence[dg.AssetCheckKey],
    interval_seconds: int,
) -> dg.SensorDefinition:
    """Return the sensor of a pipeline's datasets and dashboards.

    It does not build the datasets while one of `dataset_checks` fails, nor the dashboards while one of
    `dashboard_checks` fails. It runs every `interval_seconds`, but not more often than every 15 s.
    """
    datasets = {pipeline.key("dataset", dataset.name) for dataset in pipeline.spec.datasets}

    @dg.sensor(
        name=f"{pipeline.name}_refresh",
        job=jobs.definitions[jobs.refresh.name],
        minimum_interval_seconds=max(_MIN_INTERVAL_SECONDS, interval_seconds),
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Rebuilds datasets and dashboards after lake commits, deletes replaced builds of refined tables, "
        "and runs QuickSight ingestions that were postponed.",
    )
    def refresh(context: dg.SensorEvaluationContext, store: ObjectStore) -> Tick:
        bucket = location(store).store()
        commits = table_progress.lake_commits(bucket, pipeline)
        if not commits:
            return dg.SkipReason("nothing is applied to a lake table yet")
        built = {key: standard_metadata.latest(context.instance, key).get(LAKE_COMMITS) for key in jobs.refresh.assets}
        stale = [key for key, value in built.items() if value is None or value.value != commits]
        pending = _pending(pipeline, bucket)
        if not stale and not pending:
            if expired := _expired(pipeline, bucket):
                keys = [pipeline.key("dataset", name) for name in expired]
                return launch(context, jobs.refresh.only(*keys), f"delete:{','.join(expired.values())}")
            return dg.SkipReason("datasets and dashboards are built over the newest commits")
        # With the assets' names, so that one which is added to the YAML without a new commit gets another run key.
        names = short_digest(repr(jobs.refresh.assets))
        digest = f"{table_progress.commits_digest(commits)}:{names}"
        part, position = jobs.refresh, f"refresh:{digest}"
        if not stale:
            part = jobs.refresh.only(*(pipeline.key("dashboard", name) for name in pending))
            position = "ingest:" + ",".join(f"{name}@{allowed_at:.0f}" for name, allowed_at in pending.items())
        faults = upstream_checks.failures(context.instance, dataset_checks, bucket, pipeline.name)
        blocked = [] if faults else upstream_checks.failures(context.instance, dashboard_checks, bucket, pipeline.name)
        if blocked and datasets.intersection(stale):
            return launch(context, jobs.refresh.only(*sorted(datasets)), f"datasets:{digest}", counting=_BUILDS)
        if faults or blocked:
            return dg.SkipReason(f"not built: {(faults or blocked)[0]}")
        return launch(context, part, position, counting=_BUILDS)

    return refresh


def _pending(pipeline: Pipeline, bucket: Bucket) -> dict[str, float]:
    """Return the dashboards whose postponed ingestion may run now, each with the time from which it may run."""
    now, found = time.time(), {}
    for name in sorted(PurePath(file).stem for file in pipeline.spec.dashboards):
        state = stage_state.read(bucket, object_names.stage_state_key(pipeline.name, "dashboard", name))
        allowed_at = state.get(INGESTION_ALLOWED_AT)
        if allowed_at is not None and float(allowed_at) <= now:
            found[name] = float(allowed_at)
    return found


def _expired(pipeline: Pipeline, bucket: Bucket) -> dict[str, str]:
    """Return the datasets with a replaced build whose retention has ended, each with its oldest such build."""
    ended = time.time() - refined_table.RETENTION_SECONDS
    found = {}
    for dataset in pipeline.spec.datasets:
        state = stage_state.read(bucket, object_names.stage_state_key(pipeline.name, "dataset", dataset.name))
        replaced = sorted((since, build) for build, since in state.get(refined_table.REPLACED_BUILDS, {}).items())
        if replaced and replaced[0][0] <= ended:
            found[dataset.name] = replaced[0][1]
    return found
