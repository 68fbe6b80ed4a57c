"""Materialise a stage of several tables of a run in parallel.

Dagster's in-process executor runs one step after another. The first step of a stage therefore starts the stage for all
tables of the run that are ready, in threads that share the run's Spark session. The step of each table then waits for
its own result and raises its own error, so that a table that fails does not stop the others.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable
from concurrent.futures import Future, ThreadPoolExecutor

import dagster as dg

from cdc_lake.pipeline.naming import TableFlow
from resources.spark.job_interface import SparkJobs

AT_ONCE = 4
"""The maximum number of tables in parallel. It may exceed the number of cores, because a table mostly waits for the
store and for Spark's driver. It is limited, because each table has a batch in memory."""
_REMEMBERED_RUNS = 16
_DONE = {dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.ASSET_CHECK_EVALUATION}

Result = dg.MaterializeResult[None]

_threads = ThreadPoolExecutor(AT_ONCE, thread_name_prefix="table")
_started: OrderedDict[str, dict[dg.AssetKey, Future[Result]]] = OrderedDict()
"""The stages that this process has started, by run id and asset key. Only the thread that executes a run's steps uses
the run's entry."""


def materialise(
    context: dg.AssetExecutionContext,
    table: TableFlow,
    stage: str,
    tables: Iterable[TableFlow],
    work: Callable[[TableFlow], Result],
    spark: SparkJobs,
) -> Result:
    """Start `work` for all tables of the run that are ready; return its result for `table`, or raise its error.

    `tables` are all tables that have the stage. If the run is interrupted, the jobs of all its tables are cancelled.
    """
    futures = _of_run(context.run.run_id)
    key = table.key(stage)
    for each in tables:
        if each.key(stage) not in futures and (each.key(stage) == key or _is_ready(context, each.key(stage))):
            futures[each.key(stage)] = _threads.submit(work, each)
    try:
        return futures[key].result()
    except BaseException:
        if not futures[key].done():  # the wait was interrupted
            for future in futures.values():
                future.cancel()
            spark.cancel()
        raise


def _of_run(run_id: str) -> dict[dg.AssetKey, Future[Result]]:
    futures = _started.setdefault(run_id, {})
    while len(_started) > _REMEMBERED_RUNS:
        _started.popitem(last=False)
    return futures


def _is_ready(context: dg.AssetExecutionContext, key: dg.AssetKey) -> bool:
    """Return whether the run includes the asset, and its upstream assets and their blocking checks have succeeded."""
    layer, steps = context.job_def.asset_layer, context.run.step_keys_to_execute
    if key not in layer.selected_asset_keys:
        return False
    if steps is not None and key.to_python_identifier() not in steps:  # the run repeats only failed steps
        return False
    upstream = layer.asset_graph.get(key).parent_keys & layer.selected_asset_keys
    checks = {
        check
        for check in layer.asset_graph.asset_check_keys
        if check.asset_key in upstream and layer.asset_graph.get(check).blocking
    }
    done: set[dg.AssetKey | dg.AssetCheckKey] = set()
    for entry in context.instance.all_logs(context.run.run_id, of_type=_DONE):
        event = entry.get_dagster_event()
        if event.event_type == dg.DagsterEventType.ASSET_MATERIALIZATION and event.asset_key is not None:
            done.add(event.asset_key)
        elif event.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION:
            found = event.asset_check_evaluation_data
            if found.passed or found.severity != dg.AssetCheckSeverity.ERROR:
                done.add(found.asset_check_key)
    return upstream | checks <= done
