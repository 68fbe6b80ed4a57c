"""What a writer can do: the product's own steps, in the writer's process."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import cache
from pathlib import Path
from typing import Any

import dagster as dg

from cdc_lake.contract.table import lease
from cdc_lake.definitions import defs
from cdc_lake.demo.graph import Graph
from cdc_lake.instance import dagster_home
from cdc_lake.jobs.apply import upsert
from cdc_lake.jobs.landing import land
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.assets.topic import connector_config
from cdc_lake.pipeline.loading import load
from cdc_lake.pipeline.naming import TableFlow, location
from cdc_lake.pipeline.operations import reset as resetting
from cdc_lake.pipeline.operations import resnapshot as resnapshotting
from cdc_lake.profile import bound, resolved, spark

PIPELINE = "northwind"
STAGES = ("source", "topic", "raw", "lake", "dataset", "dashboard")
LEASE_SECONDS = 4.0
_QUIET = {"loggers": {"console": {"config": {"log_level": "CRITICAL"}}}}
_DAGSTER_HOME = "FAULTS_DAGSTER_HOME"

_held = lease.held


def _briefly(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - lease.held's own
    """lease.held, for a few seconds at most."""
    given = inspect.signature(_held).bind(*args, **kwargs)
    given.apply_defaults()
    given.arguments["seconds"] = min(given.arguments["seconds"], LEASE_SECONDS)
    return _held(*given.args, **given.kwargs)


lease.held = _briefly


def elsewhere(dagster_home: Path) -> dict[str, str]:
    """The environment of a writer whose runs are kept in another Dagster home than the stack's own."""
    return {_DAGSTER_HOME: str(dagster_home)}


@cache
def graph() -> Graph:
    """The pipeline's graph, loaded once."""
    return Graph(PIPELINE, defs(), instance())


@cache
def instance() -> dg.DagsterInstance:
    """Where this process keeps its runs, opened once."""
    return dg.DagsterInstance.from_config(dagster_folder())


def dagster_folder() -> str:
    """The folder of this process's runs: another Dagster home, or the stack's own."""
    return os.environ.get(_DAGSTER_HOME) or str(dagster_home())


def table() -> TableFlow:
    """The pipeline's one table."""
    return load(PIPELINE).tables[0]


def arm(value: str) -> None:
    """Set the failpoints of this process; its Python workers keep what it was started with."""
    os.environ["CDC_LAKE_FAILPOINTS"] = value


def materialise(*stages: str) -> Mapping[str, bool]:
    """Materialise stages with their checks; which passed."""
    return dict(graph().materialise(*stages).checks)


def carry(*stages: str) -> None:
    """Materialise stages without their checks. Raises what a stage raises."""
    assets = [each for each in defs().assets or () if isinstance(each, dg.AssetsDefinition)]
    chosen = [each for each in assets if each.key.path[0] == PIPELINE and each.key.path[1] in stages]
    assert {each.key.path[1] for each in chosen} == set(stages)
    dg.materialize(chosen, instance=instance(), resources=dict(bound()), run_config=_QUIET)


def barrier() -> None:
    """Wait until everything that the source has committed is in Kafka."""
    flow, found = load(PIPELINE), resolved()
    table_progress.barrier(flow.at_source(found["postgres"]), found["kafka"], found["connect"], flow, 60)


def metadata(stage: str) -> Mapping[str, Any]:
    """Materialise one stage of one asset; what it reports."""
    return dict(next(iter(graph().materialise(stage).metadata.values())))


def reset() -> list[str]:
    """Start the pipeline over; what was removed."""
    flow, found = load(PIPELINE), resolved()
    store = location(found["store"]).store()
    own = {name: found[name] for name in ("postgres", "kafka", "connect", "glue", "deployment", "dashboards")}
    return list(resetting.reset(flow, store=store, **own))


def resnapshot(reason: str) -> list[str]:
    """What the command does; what it says."""
    flow, found = load(PIPELINE), resolved()
    postgres = flow.at_source(found["postgres"])
    systems = resnapshotting.Systems(
        postgres=postgres,
        kafka=found["kafka"],
        connect=found["connect"],
        location=location(found["store"]),
        run=spark().run,
        config=connector_config(flow, postgres, found["deployment"]),
        snapshot_seconds=60,
    )
    return list(resnapshotting.resnapshot(flow, systems, reason))


def apply(lease_seconds: float, wait_seconds: float) -> Mapping[str, Any]:
    """Run the upsert job; its report."""
    spec = table().upsert_spec(location(resolved()["store"]), owner=f"writer {os.getpid()}")
    spec = replace(spec, lease_seconds=lease_seconds, lease_wait_seconds=wait_seconds)
    return asdict(spark().run(upsert.run, spec))


def land_through(endpoint: str) -> Mapping[str, Any]:
    """Run the land job with an object store that is reached by way of another endpoint; its report."""
    found = resolved()
    at = replace(location(found["store"]), endpoint_url=endpoint)
    kafka = found["kafka"]
    spec = table_progress.landing(table(), kafka, at).spec
    return asdict(spark().run(land.run, replace(spec, records_per_object=20)))
