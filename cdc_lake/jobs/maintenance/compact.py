"""compact: merge the log files of a merge-on-read table into new base files.

Queries that read only base files (`<table>_ro` in Athena and Trino) return a change after the next compaction. The
commit of a compaction keeps the checkpoint and changes no row.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyspark.sql import SparkSession

from cdc_lake.contract.table import timeline
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.executor_errors import contract_errors


@dataclass(frozen=True)
class CompactSpec:
    """The table to compact."""

    table: UpsertSpec


@dataclass(frozen=True)
class CompactReport:
    """The result of one run; `commit` is None if there were no log files. Sizes are those of the new base files."""

    commit: timeline.Commit | None
    seconds: float


@contract_errors()
def run(spark: SparkSession, spec: CompactSpec) -> CompactReport:
    """Compact the table, or complete a compaction that was interrupted.

    Raises LeaseHeldError and LeaseLostError; then nothing is committed, and the next run completes the compaction.
    """
    started = time.monotonic()
    table = spec.table
    store = table.location.store()
    with table.writer_lease(store) as held:
        lake_table = table.lake_table(store)
        if lake_table.recover(spark) is None:
            return CompactReport(None, time.monotonic() - started)
        commit = lake_table.compact(spark, held)
    return CompactReport(commit, time.monotonic() - started)
