"""Watching a pipeline while nothing runs: the light checks are evaluated by a sensor too.

A check of Dagster's is evaluated by a run. Where the connector stands still no offset arrives, so no run is launched,
and what was green stays so; and nothing launches the checks of source and topic, which only a person materialises. This
sensor evaluates them and reports what has changed without a run. It also sends the pipeline's figures to `metrics`.
"""

import inspect
import json
import time
from collections.abc import Mapping, Sequence

import dagster as dg

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.pipeline.automation import pipeline_metrics
from cdc_lake.pipeline.checks import replica_identity, source, streaming, watermark
from cdc_lake.pipeline.checks.light import LightCheck
from cdc_lake.pipeline.naming import Flow, location
from resources.connectors import Connectors
from resources.errors import ResourceError
from resources.kafka import Kafka
from resources.metrics import Metrics
from resources.object_store import ObjectStore
from resources.postgres import Postgres

EVERY_SECONDS = 30
SETTINGS_EVERY_SECONDS = 300
"""What only a person's DDL changes is looked at less often: each look is a connection to the source."""
AGAIN_SECONDS = 1800
"""A result that stays the same is stored again after this, so that one can see that it is still evaluated: 48 rows a
check and day in Dagster's storage, where each evaluation would be 2,880."""
WATCHED = ("connector_running", "slot_healthy", "watermark_fresh")
SETTINGS = ("topic_contract", "replica_identity_full", "truncate_refused")


def build(flow: Flow) -> dg.SensorDefinition:
    """The sensor of a pipeline."""
    modules = (streaming, watermark, replica_identity, source)
    checks = [check for table in flow.tables for module in modules for check in module.light(table)]

    @dg.sensor(
        name=f"{flow.name}_watch",
        minimum_interval_seconds=EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            f"Evaluates {', '.join(WATCHED)}, and every {SETTINGS_EVERY_SECONDS // 60} minutes {', '.join(SETTINGS)}, "
            "while nothing runs, and sends the pipeline's figures to alarms."
        ),
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
        now = time.time()
        looked = json.loads(context.cursor).get("settings", 0.0) if context.cursor else 0.0
        pending = [check for check in checks if check.key.name in WATCHED or now >= looked + SETTINGS_EVERY_SECONDS]
        found = {check.key: _evaluated(check, resources) for check in pending}
        if len(pending) == len(checks):
            context.update_cursor(json.dumps({"settings": now}))
        red = [f"{'/'.join(key.asset_key.path)}:{key.name}" for key, result in found.items() if not result.passed]
        told = f"red: {', '.join(red)}" if red else f"{len(found)} checks are green"
        if unsaid := _put(flow, kafka, store, metrics):
            context.log.warning(unsaid)
            told = f"{told}; {unsaid}"
        return dg.SensorResult(asset_events=_new(context.instance, found, now), skip_reason=told)

    return watch


def _new(
    instance: dg.DagsterInstance, found: Mapping[dg.AssetCheckKey, dg.AssetCheckResult], now: float
) -> Sequence[dg.AssetCheckEvaluation]:
    """The results that differ from those that Dagster has stored last, by whichever run or tick, or that are as old as
    AGAIN_SECONDS. A check that a run is about to evaluate is left to that run.
    """
    stored = instance.event_log_storage.get_latest_asset_check_execution_by_key(list(found))
    events = []
    for key, result in found.items():
        last = stored.get(key)
        same = last is not None and last.status.value in ("PLANNED", "SUCCEEDED" if result.passed else "FAILED")
        if last is not None and same and now < last.create_timestamp + AGAIN_SECONDS:
            continue
        events.append(
            dg.AssetCheckEvaluation(
                asset_key=key.asset_key,
                check_name=key.name,
                passed=result.passed,
                metadata=result.metadata or {},
                severity=result.severity,
                description=result.description,
            )
        )
    return events


def _put(flow: Flow, kafka: Kafka, store: ObjectStore, metrics: Metrics) -> str:
    """Tell the pipeline's figures; why not, where that fails. The alarm on them takes silence for bad news."""
    try:
        metrics.put(flow.name, pipeline_metrics.now(flow, kafka, store))
    except (ContractError, ResourceError) as error:
        return f"the figures of {flow.name} were not told: {error}"
    return ""


def _evaluated(check: LightCheck, resources: Mapping[str, object]) -> dg.AssetCheckResult:
    """What a check finds; red where it can't look."""
    try:
        return check.find(**{name: resources[name] for name in inspect.signature(check.find).parameters})
    except (ContractError, ResourceError) as error:
        return dg.AssetCheckResult(passed=False, description=str(error))
