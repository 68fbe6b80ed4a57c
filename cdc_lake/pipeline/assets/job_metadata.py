"""Metadata of the Spark jobs that a stage runs on EMR: the run's id and state, and the URLs of its log and console."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event
from typing import Any, TypeVar

import dagster as dg

from cdc_lake.pipeline.assets.standard_metadata import Metadata
from cdc_lake.pipeline.flow import PURPOSE
from cdc_lake.pipeline.table_flow import TableFlow
from resources.errors import JobFailed
from resources.spark.job_interface import JobRun, SparkJobs

S = TypeVar("S")
R = TypeVar("R")

COMPARISON = "equals_source"
"""The name of the lake table's check that runs Spark."""


def warm(context: dg.AssetExecutionContext, table: TableFlow, spark: SparkJobs) -> None:
    """Start Spark in parallel to the first stages, if the run certainly needs it.

    That is a run that was launched to poll or to land records, or that compares the table with the source.
    """
    compares = dg.AssetCheckKey(table.key("lake"), COMPARISON)
    if (
        context.run.tags.get(PURPOSE) in ("poll", "land")
        or compares in context.job_def.asset_layer.asset_graph.asset_check_keys
    ):
        spark.warm()


class JobRuns:
    """Runs Spark jobs and records the runs that were started through this object (implements `SparkJobs`).

    Once `stopped` is set, it starts no further job.
    """

    def __init__(self, spark: SparkJobs, stopped: Event | None = None) -> None:
        self._spark = spark
        self._stopped = Event() if stopped is None else stopped
        self._runs: dict[str, JobRun] = {}

    def run(self, job: Callable[[Any, S], R], spec: S) -> R:
        """See SparkJobs. Raises JobFailed if `stopped` is set."""
        if self._stopped.is_set():
            raise JobFailed("Cannot start a Spark job: the run was interrupted.", "Run it again.")
        report = self._spark.run(job, spec)
        run = self._spark.last_run()
        if run is not None:
            self._runs[run.job] = run
        return report

    def warm(self) -> None:
        """See SparkJobs."""
        self._spark.warm()

    def last_run(self) -> JobRun | None:
        """See SparkJobs."""
        return self._spark.last_run()

    def cancel(self) -> None:
        """See SparkJobs."""
        self._spark.cancel()

    def require_alive(self) -> None:
        """See SparkJobs."""
        self._spark.require_alive()

    def stop(self) -> None:
        """See SparkJobs."""
        self._spark.stop()

    def metadata(self) -> Metadata:
        """Return metadata of the newest run of each job; empty if jobs run in this process."""
        found: Metadata = {}
        for name, run in self._runs.items():
            found[f"{name}_run"] = dg.MetadataValue.text(f"{run.id}: {run.state}")
            found[f"{name}_log"] = dg.MetadataValue.url(run.log_url) if run.log_url else dg.MetadataValue.text(run.logs)
            if run.console_url:
                found[f"{name}_console"] = dg.MetadataValue.url(run.console_url)
        return found
