"""Refuse to build datasets and dashboards while a check upstream of them fails.

A blocking check stops downstream assets only in its own run. A build therefore also reads the newest result of each
check upstream, from any run or sensor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

import dagster as dg

from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.pipeline.checks import tiers

_PAGE_SIZE = 20


def upstream_of(stage: str, checks: Iterable[dg.AssetCheckKey]) -> list[dg.AssetCheckKey]:
    """Return the checks of the stages before `stage`, which is `dataset` or `dashboard`."""
    tables = ("source", "topic", "raw", "lake")
    upstream = {"dataset": tables, "dashboard": (*tables, "dataset")}
    return [key for key in checks if key.asset_key.path[1] in upstream[stage]]


def require_passed(
    instance: dg.DagsterInstance, what: str, checks: Sequence[dg.AssetCheckKey], store: ObjectStore, pipeline: str
) -> None:
    """Raise ContractError if failures() returns a sentence; the message names the check, the asset, and what to do."""
    if faults := failures(instance, checks, store, pipeline):
        raise ContractError(f"Cannot build {what}: {'; '.join(faults)}")


def failures(
    instance: dg.DagsterInstance, checks: Sequence[dg.AssetCheckKey], store: ObjectStore, pipeline: str
) -> list[str]:
    """Return a sentence for each check whose newest result is a failure.

    Ignores warnings, results marked tiers.LATENESS, and results from before the current epoch was complete: a reset or
    a resnapshot has replaced the data since.
    """
    epochs = Epochs(store, pipeline)
    epoch = epochs.current()
    completion = epochs.completion(epoch.number) if epoch else None
    since = completion.completed_at.timestamp() if completion else 0.0
    return [fault for key in checks if (fault := _fault(instance, key, since))]


def _fault(instance: dg.DagsterInstance, key: dg.AssetCheckKey, since: float) -> str:
    found = _newest(instance, key)
    if found is None or found[0].passed or found[0].severity != dg.AssetCheckSeverity.ERROR:
        return ""
    evaluation, at = found
    if at < since or tiers.is_lateness(evaluation.metadata):
        return ""
    asset = "/".join(key.asset_key.path)
    description = f" ({evaluation.description})" if evaluation.description else ""
    return (
        f"check {key.name} of {asset} failed at {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC{description}. "
        f"Read its result on the page of {asset}, fix the cause, and run the check again there; this error ends "
        "when the check passes"
    )


def _newest(instance: dg.DagsterInstance, key: dg.AssetCheckKey) -> tuple[dg.AssetCheckEvaluation, float] | None:
    """Return the newest evaluation and its time (seconds since 1970); None if the check was never evaluated."""
    cursor: int | None = None
    while records := instance.event_log_storage.get_asset_check_execution_history(key, limit=_PAGE_SIZE, cursor=cursor):
        for record in records:
            found = evaluation(record)
            if found is not None and record.event is not None:
                return found, record.event.timestamp
        cursor = records[-1].id
    return None


def evaluation(record: Any) -> dg.AssetCheckEvaluation | None:  # noqa: ANN401 - the class of Dagster's record is private
    """Return the evaluation of a stored execution of a check; None if it has not ended, or its run failed before."""
    event = record.event.dagster_event if record.event else None
    if event is None or event.event_type != dg.DagsterEventType.ASSET_CHECK_EVALUATION:
        return None
    found: dg.AssetCheckEvaluation = event.asset_check_evaluation_data
    return found
