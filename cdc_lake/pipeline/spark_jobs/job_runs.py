"""Run the Spark jobs of a stage, and return metadata of their runs on EMR: id, state, URLs of log and console."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event
from typing import Any, TypeVar

import dagster as dg

from cdc_lake.pipeline.assets.standard_metadata import Metadata
from cdc_lake.pipeline.pipeline import PURPOSE
from cdc_lake.pipeline.pipeline_table import PipelineTable
from cdc_lake.pipeline.spark_jobs.spark_wrapper import SparkWrapper
from resources.errors import JobFailed
from resources.spark.job_interface import JobRun, SparkJobs

S = TypeVar("S")
R = TypeVar("R")

_COMPARISON_CHECK = "equals_source"
"""The name of the lake table's check that runs Spark."""


def warm_spark(context: dg.AssetExecutionContext, table: PipelineTable, spark: SparkJobs) -> None:
    """Start Spark in parallel with the first stages of a run, if the run is certain to run Spark jobs.

    That is a run that was launched to poll or to land records, or that compares the table with the source.
    """
    compares = dg.AssetCheckKey(table.key("lake"), _COMPARISON_CHECK)
    if (
        context.run.tags.get(PURPOSE) in ("poll", "land")
        or compares in context.job_def.asset_layer.asset_graph.asset_check_keys
    ):
        spark.warm()


@dataclass(frozen=True, eq=False)
class JobRuns(SparkWrapper):
    """Runs Spark jobs and records the runs that were started through this object (implements `SparkJobs`).

    Once `stopped` is set, it starts no further job.
    """

    stopped: Event = field(default_factory=Event)
    _runs: dict[str, JobRun] = field(default_factory=dict, init=False)

    def run(self, job: Callable[[Any, S], R], spec: S) -> R:
        """See SparkJobs. Raises JobFailed if `stopped` is set."""
        if self.stopped.is_set():
            raise JobFailed("Cannot start a Spark job: the run was interrupted.", "Run it again.")
        report = self.spark.run(job, spec)
        run = self.spark.last_run()
        if run is not None:
            self._runs[run.job] = run
        return report

    def metadata(self) -> Metadata:
        """Return metadata of the newest run of each job; empty if jobs run on this machine."""
        found: Metadata = {}
        for name, run in self._runs.items():
            found[f"{name}_run"] = dg.MetadataValue.text(f"{run.id}: {run.state}")
            found[f"{name}_log"] = dg.MetadataValue.url(run.log_url) if run.log_url else dg.MetadataValue.text(run.logs)
            if run.console_url:
                found[f"{name}_console"] = dg.MetadataValue.url(run.console_url)
        return found
