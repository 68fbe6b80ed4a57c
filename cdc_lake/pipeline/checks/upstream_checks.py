"""Datasets and dashboards are not built over a table that is known to be wrong.

A blocking check stops what is downstream within its own run only. A build therefore also reads the newest result of
each check upstream of it, from whichever run or sensor that is.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime

import dagster as dg

from cdc_lake.contract.errors import ContractError

_A_PAGE = 20


def upstream_of(stage: str, checks: Iterable[dg.AssetCheckKey]) -> list[dg.AssetCheckKey]:
    """Return the checks of the stages before `stage`, which is `dataset` or `dashboard`."""
    before = {"dataset": ("source", "topic", "raw", "lake"), "dashboard": ("source", "topic", "raw", "lake", "dataset")}
    return [key for key in checks if key.asset_key.path[1] in before[stage]]


def require_passed(instance: dg.DagsterInstance, what: str, checks: Sequence[dg.AssetCheckKey]) -> None:
    """Raise ContractError, which names check, table and what to do, where the newest result of a check is a failure."""
    if faults := failed(instance, checks):
        raise ContractError(f"Cannot build {what}: {'; '.join(faults)}")


def failed(instance: dg.DagsterInstance, checks: Sequence[dg.AssetCheckKey]) -> list[str]:
    """Return a sentence for each of the checks whose newest result is a failure; a warning is not one."""
    return [fault for key in checks if (fault := _fault(instance, key))]


def _fault(instance: dg.DagsterInstance, key: dg.AssetCheckKey) -> str:
    found = _newest(instance, key)
    if found is None or found[0].passed or found[0].severity != dg.AssetCheckSeverity.ERROR:
        return ""
    evaluation, at = found
    asset = "/".join(key.asset_key.path)
    said = f" ({evaluation.description})" if evaluation.description else ""
    return (
        f"check {key.name} of {asset} failed at {datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M:%S} UTC{said}. Look at "
        f"its result on the page of {asset}, repair the cause, and run the check again there; a result that passes "
        "lifts this"
    )


def _newest(instance: dg.DagsterInstance, key: dg.AssetCheckKey) -> tuple[dg.AssetCheckEvaluation, float] | None:
    """The newest evaluation and its time (seconds since 1970); a check that is planned, or was never done, has none."""
    cursor: int | None = None
    while records := instance.event_log_storage.get_asset_check_execution_history(key, limit=_A_PAGE, cursor=cursor):
        for record in records:
            event = record.event.dagster_event if record.event else None
            if event and event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
                return event.asset_check_evaluation_data, record.create_timestamp
        cursor = records[-1].id
    return None
