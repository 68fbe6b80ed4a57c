"""Actions of a writer: the product's own steps, in the writer's process."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from threading import Event
from typing import Any

import dagster as dg

from cdc_lake.contract.table import lease
from cdc_lake.definitions import defs
from cdc_lake.demo.graph import Graph
from cdc_lake.instance import dagster_home
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.landing import land
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.continuous import run as continuous
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.operations import reset as resetting
from cdc_lake.pipeline.operations import resnapshot as resnapshotting
from cdc_lake.pipeline.operations.resnapshot_steps import systems_of
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.spark_jobs import small_landings
from cdc_lake.pipeline.spark_jobs.spark_wrapper import SparkWrapper
from cdc_lake.profile import resolved, run_resources, spark

PIPELINE = "northwind"
STAGES = ("source", "topic", "raw", "lake", "dataset", "dashboard")
LEASE_SECONDS = 4.0
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_DAGSTER_HOME = "FAULTS_DAGSTER_HOME"

_held = lease.held


def _briefly(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - lease.held's own
    """Call lease.held with LEASE_SECONDS in place of the default; a duration that a test chose stays."""
    bound_args = inspect.signature(_held).bind(*args, **kwargs)
    bound_args.apply_defaults()
    if bound_args.arguments["seconds"] == lease.SECONDS:
        bound_args.arguments["seconds"] = LEASE_SECONDS
    return _held(*bound_args.args, **bound_args.kwargs)


lease.held = _briefly


def elsewhere(dagster_home: Path) -> dict[str, str]:
    """Return the environment of a writer that stores its runs in another Dagster home."""
    return {_DAGSTER_HOME: str(dagster_home)}


@cache
def graph() -> Graph:
    """Return the pipeline's graph, loaded once."""
    return Graph(PIPELINE, defs(), instance())


@cache
def instance() -> dg.DagsterInstance:
    """Return this process's Dagster instance, opened once."""
    return dg.DagsterInstance.from_config(dagster_folder())


def dagster_folder() -> str:
    """Return this process's Dagster home: another one, or the stack's."""
    return os.environ.get(_DAGSTER_HOME) or str(dagster_home())


def table() -> PipelineTable:
    """Return the pipeline's only table."""
    return load(PIPELINE).tables[0]


def land_by_spark() -> None:
    """Let Spark land small batches of this process too."""
    small_landings.SMALL_LANDING_OFFSETS = 0


def arm(value: str) -> None:
    """Set the failpoints of this process; its Python workers keep those of its start."""
    os.environ["CDC_LAKE_FAILPOINTS"] = value


def materialise(*stages: str) -> Mapping[str, bool]:
    """Materialise stages with their checks, and return whether each check passed."""
    return dict(graph().materialise(*stages).checks)


def materialise_unchecked(*stages: str) -> None:
    """Materialise stages without their checks. Raises what a stage raises."""
    assets = [each for each in defs().assets or () if isinstance(each, dg.AssetsDefinition)]
    chosen = [each for each in assets if each.key.path[0] == PIPELINE and each.key.path[1] in stages]
    assert {each.key.path[1] for each in chosen} == set(stages)
    dg.materialize(chosen, instance=instance(), resources=dict(run_resources()), run_config=_QUIET)


class _OneSession(SparkWrapper):
    """The session of this process. It stays open after a run, so that the next run need not start Spark."""

    def stop(self) -> None:
        """Keep the session."""


def run_continuously() -> None:
    """Do what `cdc-lake run` does until it has landed and applied everything; failed steps are only logged."""
    found, stop = resolved(), Event()
    stop.set()
    own = {name: found[name] for name in ("postgres", "kafka", "store", "glue", "athena")}
    jobs = _OneSession(spark())
    with continuous.systems(load(PIPELINE), **own, spark=jobs, owner=f"writer {os.getpid()}") as systems:
        continuous.run(load(PIPELINE), systems, lambda _: None, stop)


def barrier() -> None:
    """Wait until Kafka has everything that the source has committed."""
    pipeline, found = load(PIPELINE), resolved()
    table_progress.barrier(pipeline.source_postgres(found["postgres"]), found["kafka"], found["connect"], pipeline, 60)


def metadata(stage: str) -> Mapping[str, Any]:
    """Materialise a stage with one asset, and return its metadata."""
    return dict(next(iter(graph().materialise(stage).metadata.values())))


def reset() -> list[str]:
    """Reset the pipeline, and return what was removed."""
    pipeline, found = load(PIPELINE), resolved()
    store = location(found["store"]).store()
    own = {name: found[name] for name in ("kafka", "connect", "glue", "deployment", "dashboards")}
    return list(resetting.reset(pipeline, pipeline.source_postgres(found["postgres"]), store=store, **own))


def resnapshot(reason: str) -> list[str]:
    """Do what `cdc-lake resnapshot` does, and return its messages."""
    pipeline = load(PIPELINE)
    systems = systems_of(pipeline, resolved(), spark().run, 60)
    return list(resnapshotting.resnapshot(pipeline, systems, reason))


def apply(lease_seconds: float, wait_seconds: float) -> Mapping[str, Any]:
    """Run the upsert job, and return its report."""
    spec = table().upsert_spec(location(resolved()["store"]), owner=f"writer {os.getpid()}")
    spec = replace(spec, lease_seconds=lease_seconds, lease_wait_seconds=wait_seconds)
    return asdict(spark().run(upsert.run, spec))


def land_through(endpoint: str) -> Mapping[str, Any]:
    """Run the land job with another endpoint of the object store, and return its report."""
    found = resolved()
    at = replace(location(found["store"]), endpoint_url=endpoint)
    kafka = found["kafka"]
    spec = table_progress.landing_input(table(), kafka, at).spec
    return asdict(spark().run(land.run, replace(spec, records_per_object=5)))
