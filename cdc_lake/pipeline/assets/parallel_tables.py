"""Materialise a stage of several tables of a run in parallel.

Dagster's in-process executor runs one step after another. The first step of a stage therefore starts the stage for all
tables of the run that are ready, in threads that share the run's Spark session. The step of each table then waits for
its own result and raises its own error, so that a table that fails does not stop the others. An executor that starts a
process for each step gets no parallel tables: each process materialises its own table.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event

import dagster as dg

from cdc_lake.pipeline.pipeline_table import PipelineTable
from resources.spark.job_interface import SparkJobs

MAX_TABLES = 4
"""The maximum number of tables in parallel. It may exceed the number of cores, because a table mostly waits for the
store and for Spark's driver. It is limited, because each table has a batch in memory."""
_CANCEL_EVERY_SECONDS = 0.5
_DONE = {dg.DagsterEventType.ASSET_MATERIALIZATION, dg.DagsterEventType.ASSET_CHECK_EVALUATION}

Result = dg.MaterializeResult[None]


class TableThreads:
    """The threads of one run in one process, with the result of each asset that they materialise.

    Only the thread that executes the run's steps may call the methods.
    """

    def __init__(self) -> None:
        self.began = time.monotonic()
        """When the run began (time.monotonic())."""
        self.stopped = Event()
        """Set at the end of the run. Jobs and queries that threads still wait for then end with an error."""
        self._spark: SparkJobs | None = None
        self._threads = ThreadPoolExecutor(MAX_TABLES, thread_name_prefix="table")
        self._started: dict[dg.AssetKey, Future[Sequence[Result]]] = {}

    def materialise(
        self,
        context: dg.AssetExecutionContext,
        table: PipelineTable,
        stage: str,
        tables: Iterable[PipelineTable],
        work: Callable[[PipelineTable], Sequence[Result]],
        spark: SparkJobs,
    ) -> Result:
        """Start `work` for all tables of the run that are ready; return its result for `table`, or raise its error.

        `tables` are all tables that have the stage, and `spark` runs the jobs of `work`. The first result of `work` is
        that of the stage. The others are materialisations of other assets, which are recorded.
        """
        self._spark = spark
        for each in tables:
            key = each.key(stage)
            if key not in self._started and (each is table or _is_ready(context, key)):
                self._started[key] = self._threads.submit(work, each)
        found, *others = self._started[table.key(stage)].result()
        for other in others:
            context.log_event(dg.AssetMaterialization(_key(other), metadata=other.metadata))
        return found

    def end(self) -> None:
        """Cancel the remaining work and wait until all threads have ended: an interrupted run leaves threads behind."""
        self.stopped.set()
        running = {each for each in self._started.values() if not each.cancel() and not each.done()}
        while running and self._spark is not None:
            self._spark.cancel()  # repeated, because a job may start its next Spark job after a cancellation
            _, running = wait(running, timeout=_CANCEL_EVERY_SECONDS)
        self._threads.shutdown()


@dg.resource
def _table_threads() -> Iterator[TableThreads]:
    threads = TableThreads()
    try:
        yield threads
    finally:
        threads.end()


RESOURCES: Mapping[str, dg.ResourceDefinition] = {"table_threads": _table_threads}
"""The resource of the assets that are materialised in parallel. Dagster ends it at the end of each run, also after an
error."""


def _key(result: Result) -> dg.AssetKey:
    if result.asset_key is None:
        raise ValueError("a result after the first one must name its asset")
    return result.asset_key


def _is_ready(context: dg.AssetExecutionContext, key: dg.AssetKey) -> bool:
    """Return whether this process materialises the asset, whose upstream assets and blocking checks have succeeded."""
    layer = context.job_def.asset_layer
    # The plan of this process. A retry of a run omits the steps that succeeded; an executor that starts a process for
    # each step gives it only that step.
    steps = context.get_step_execution_context().execution_plan.step_keys_to_execute
    if key not in layer.selected_asset_keys or key.to_python_identifier() not in steps:
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
