"""Watching a pipeline while nothing runs: the light checks are evaluated by a sensor too.

A check of Dagster's is evaluated by a run. Where the connector stands still no offset arrives, so no run is launched,
and what was green stays so. This sensor asks the same checks whether the connector runs, its slot is healthy and the
watermarks move on, and reports what it finds without a run. It also tells the pipeline's figures to `metrics`.

Here: which checks, and when their answers are reported. Not here: the checks themselves (checks/), the figures
(figures.py).
"""

import inspect
import json
import time
from collections.abc import Mapping

import dagster as dg

from cdc_lake.contract.epochs import Epochs
from cdc_lake.contract.errors import ContractError
from cdc_lake.pipeline import figures
from cdc_lake.pipeline.checks import streaming, watermark
from cdc_lake.pipeline.flow import Flow, location
from resources.connectors import Connectors
from resources.errors import ResourceError
from resources.kafka import Kafka
from resources.metrics import Metrics
from resources.object_store import ObjectStore
from resources.postgres import Postgres

EVERY_SECONDS = 30
AGAIN_SECONDS = 300
"""An answer that stays the same is reported again after this, so that one can see that somebody looks."""
WATCHED = ("connector_running", "slot_healthy", "watermark_fresh")


def build(flow: Flow) -> dg.SensorDefinition:
    """The sensor of a pipeline."""
    every = [check for table in flow.tables for check in (*streaming.build(table), *watermark.build(table))]
    checks = [check for check in every if check.check_key.name in WATCHED]

    @dg.sensor(
        name=f"{flow.name}_watch",
        minimum_interval_seconds=EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=f"Evaluates {', '.join(WATCHED)} while nothing runs, and tells the pipeline's figures to alarms.",
    )
    def watch(
        context: dg.SensorEvaluationContext,
        postgres: Postgres,
        kafka: Kafka,
        connect: dg.ResourceParam[Connectors],
        store: ObjectStore,
        metrics: dg.ResourceParam[Metrics],
    ) -> dg.SensorResult:
        epochs = Epochs(location(store).store(), flow.name)
        epoch = epochs.current()
        if epoch is None or epochs.completion(epoch.number) is None:
            return dg.SensorResult(skip_reason=f"pipeline {flow.name} has not begun, or its snapshot is under way")
        resources = {"postgres": postgres, "kafka": kafka, "connect": connect, "store": store}
        reported: dict[str, list[float]] = json.loads(context.cursor) if context.cursor else {}
        events, red, now = [], [], time.time()
        for check in checks:
            found = _evaluated(check, resources)
            name = f"{'/'.join(check.check_key.asset_key.path)}:{check.check_key.name}"
            if not found.passed:
                red.append(name)
            passed, at = reported.get(name, (-1, 0))
            if passed == found.passed and now < at + AGAIN_SECONDS:
                continue
            reported[name] = [found.passed, now]
            events.append(
                dg.AssetCheckEvaluation(
                    asset_key=check.check_key.asset_key,
                    check_name=check.check_key.name,
                    passed=found.passed,
                    metadata=found.metadata or {},
                    severity=found.severity,
                    description=found.description,
                )
            )
        told = f"red: {', '.join(red)}" if red else f"{len(checks)} checks are green"
        if unsaid := _put(flow, kafka, store, metrics):
            context.log.warning(unsaid)
            told = f"{told}; {unsaid}"
        context.update_cursor(json.dumps(reported))
        return dg.SensorResult(asset_events=events, skip_reason=told)

    return watch


def _put(flow: Flow, kafka: Kafka, store: ObjectStore, metrics: Metrics) -> str:
    """Tell the pipeline's figures; why not, where that fails. The alarm on them takes silence for bad news."""
    try:
        metrics.put(flow.name, figures.now(flow, kafka, store))
    except (ContractError, ResourceError) as error:
        return f"the figures of {flow.name} were not told: {error}"
    return ""


def _evaluated(check: dg.AssetChecksDefinition, resources: Mapping[str, object]) -> dg.AssetCheckResult:
    """What a check finds; red where it can't look."""
    # The function below @asset_check: calling the check itself would have Dagster make the resources anew.
    asked = check.op.compute_fn.decorated_fn  # type: ignore[union-attr]
    try:
        found = asked(**{name: resources[name] for name in inspect.signature(asked).parameters})
    except (ContractError, ResourceError) as error:
        return dg.AssetCheckResult(passed=False, description=str(error))
    if not isinstance(found, dg.AssetCheckResult):
        raise TypeError(f"check {check.check_key.name} returned {found!r}")
    return found
