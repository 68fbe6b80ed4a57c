"""The sensor `<pipeline>_health`: evaluates the checks that can run without a Dagster run, and publishes metrics.

Dagster evaluates checks in runs. If the connector stops, no records arrive and no run is launched, so that the last
check results stay green. Sensors never materialise source, and materialise topic only to poll or to re-create a
connector, so that the checks of these assets otherwise run only when a person launches a run. This sensor evaluates the
checks without a run, and reports the results that changed.
"""

import inspect
import json
import time
from collections.abc import Container, Mapping, Sequence

import dagster as dg

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.plurals import counted
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.pipeline import checks as pipeline_checks
from cdc_lake.pipeline.automation import pipeline_metrics
from cdc_lake.pipeline.automation.sensors.parallel_map import NotInTime, map_parallel
from cdc_lake.pipeline.bucket_location import location
from cdc_lake.pipeline.checks import tiers, upstream_checks
from cdc_lake.pipeline.checks.light_check import LightCheck
from cdc_lake.pipeline.pipeline import Pipeline
from resources.aws.metrics import Metrics
from resources.connect.connector_interface import Connectors
from resources.errors import ResourceError
from resources.kafka.resource import Kafka
from resources.object_store import ObjectStore
from resources.postgres.resource import Postgres

EVERY_SECONDS = 30
_WRONG_DATA = (False, dg.AssetCheckSeverity.ERROR, False)
INFREQUENT_EVERY_SECONDS = 300
"""The interval of checks whose result changes only in a run, or by a command of a person (DDL, `cdc-lake dlq`)."""
REPEAT_SECONDS = 1800
"""An unchanged result is stored again after this time, to show that the check is still evaluated. That is 48 rows per
check and day in Dagster's storage; storing each evaluation of a frequent check would be 2,880."""
FREQUENT_CHECKS = ("connector_running", "slot_healthy", "transactions_visible", "watermark_fresh")
INFREQUENT_CHECKS = (
    "topic_contract",
    "replica_identity_full",
    "truncate_refused",
    "polled_column_indexed",
    "dead_letters_empty",
)
CONTINUOUS_CHECKS = ("manifests_contiguous", "landed_to_the_end")
"""Evaluated as often as the infrequent checks, if the pipeline is continuous: no run evaluates them there."""


def build(pipeline: Pipeline) -> dg.SensorDefinition:
    """Return the health sensor of a pipeline."""
    checks = [check for table in pipeline.tables for check in pipeline_checks.light(table)]
    infrequent = (*INFREQUENT_CHECKS, *(CONTINUOUS_CHECKS if pipeline.spec.mode == "continuous" else ()))

    @dg.sensor(
        name=f"{pipeline.name}_health",
        minimum_interval_seconds=EVERY_SECONDS,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description=(
            f"Evaluates {_names(checks, FREQUENT_CHECKS)}, and every {INFREQUENT_EVERY_SECONDS // 60} minutes "
            f"{_names(checks, infrequent)}, without a run, and publishes the metrics that the alarms use."
        ),
    )
    def health_sensor(
        context: dg.SensorEvaluationContext,
        postgres: Postgres,
        kafka: Kafka,
        connect: dg.ResourceParam[Connectors],
        store: ObjectStore,
        metrics: dg.ResourceParam[Metrics],
    ) -> dg.SensorResult:
        epochs = Epochs(location(store).store(), pipeline.name)
        epoch = epochs.current()
        if epoch is None or epochs.completion(epoch.number) is None:
            return dg.SensorResult(skip_reason=f"pipeline {pipeline.name} has not started, or its snapshot is running")
        resources = {"postgres": postgres, "kafka": kafka, "connect": connect, "store": store}
        now = time.time()
        last = json.loads(context.cursor).get("infrequent_at", 0.0) if context.cursor else 0.0
        include_infrequent = now >= last + INFREQUENT_EVERY_SECONDS
        pending = [check for check in checks if include_infrequent or check.key.name in FREQUENT_CHECKS]
        results, unevaluated = _evaluated(context, pending, resources)
        if len(pending) == len(checks):
            context.update_cursor(json.dumps({"infrequent_at": now}))
        failed = [f"{'/'.join(key.asset_key.path)}:{key.name}" for key, result in results.items() if not result.passed]
        message = f"failed: {', '.join(failed)}" if failed else f"{counted(len(results), 'check')} passed"
        if late := len(pending) - len(results):
            message = f"{message}; {late} not evaluated in time"
        if failure := _send_metrics(pipeline, kafka, store, metrics):
            context.log.warning(failure)
            message = f"{message}; {failure}"
        return dg.SensorResult(asset_events=_changed(context.instance, results, unevaluated, now), skip_reason=message)

    return health_sensor


def _names(checks: Sequence[LightCheck], among: Sequence[str]) -> str:
    """Return those names in `among` that a check of the pipeline has, separated by commas."""
    return ", ".join(name for name in among if any(check.key.name == name for check in checks))


def _changed(
    instance: dg.DagsterInstance,
    results: Mapping[dg.AssetCheckKey, dg.AssetCheckResult],
    unevaluated: Container[dg.AssetCheckKey],
    now: float,
) -> Sequence[dg.AssetCheckEvaluation]:
    """Return the results that differ from the stored ones, and those whose stored result is REPEAT_SECONDS old.

    A check that a run is about to evaluate is skipped. A failure that is not about lateness stays until the check was
    evaluated again: a result that only says that it could not be (in `unevaluated`) does not replace it.
    """
    stored = instance.event_log_storage.get_latest_asset_check_execution_by_key(list(results))
    events = []
    for key, result in results.items():
        last = stored.get(key)
        before = None if last is None else upstream_checks.evaluation(last)
        meant = None if before is None else _meaning(before)
        is_new = last is not None and now < last.create_timestamp + REPEAT_SECONDS
        if last is not None and is_new and (last.status.value == "PLANNED" or meant == _meaning(result)):
            continue
        if key in unevaluated and meant == _WRONG_DATA:
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


def _meaning(found: dg.AssetCheckResult | dg.AssetCheckEvaluation) -> tuple[bool, dg.AssetCheckSeverity | None, bool]:
    """Return what decides about later stages: whether it passed, its severity, and whether it is about lateness."""
    if found.passed:
        return True, None, False
    return False, found.severity, tiers.is_lateness(found.metadata or {})


def _send_metrics(pipeline: Pipeline, kafka: Kafka, store: ObjectStore, metrics: Metrics) -> str:
    """Send the pipeline's metrics. Return "" on success, else the error or the tables that are not measured."""
    try:
        measured = pipeline_metrics.measure(pipeline, kafka, store)
        metrics.put(pipeline.name, measured.values)
    except (ContractError, ResourceError) as error:
        return f"Cannot send the metrics of {pipeline.name}: {error}"
    return "; ".join(f"Cannot measure table {name}: {reason}" for name, reason in measured.unknown.items())


def _evaluated(
    context: dg.SensorEvaluationContext, checks: Sequence[LightCheck], resources: Mapping[str, object]
) -> tuple[dict[dg.AssetCheckKey, dg.AssetCheckResult], set[dg.AssetCheckKey]]:
    """Return the checks' results: a failed one for a check that raises an error, and none for one that takes too long.

    The second value contains the checks that raised an error; one other than ContractError and ResourceError is logged
    with its traceback.
    """

    def find(check: LightCheck) -> dg.AssetCheckResult:
        return check.evaluate(**{name: resources[name] for name in inspect.signature(check.evaluate).parameters})

    results, unevaluated = {}, set()
    for check, found in zip(checks, map_parallel(checks, find), strict=True):
        if isinstance(found, NotInTime):
            continue
        if isinstance(found, dg.AssetCheckResult):
            results[check.key] = found
            continue
        unevaluated.add(check.key)
        description = str(found)
        if not isinstance(found, ContractError | ResourceError):
            description = f"Cannot evaluate {check.key.to_user_string()}: {found!r}"
            context.log.error(description, exc_info=found)
        results[check.key] = dg.AssetCheckResult(passed=False, description=description, metadata=tiers.LATENESS)
    return results, unevaluated
