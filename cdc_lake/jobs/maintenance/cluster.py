"""cluster: merge the small files of a table into larger ones.

New rows, and rows that move to other partitions, create files of a few rows, and each query opens all of them. The
commit of a clustering keeps the checkpoint and changes no row; `cdc-lake changes` reports no row as changed.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyspark.sql import SparkSession

from cdc_lake.contract.table import timeline
from cdc_lake.contract.table.file_slices import SMALL_BYTES
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.executor_errors import contract_errors


@dataclass(frozen=True)
class ClusterSpec:
    """The table, and the size in bytes below which a base file is small."""

    table: UpsertSpec
    small_bytes: int = SMALL_BYTES


@dataclass(frozen=True)
class ClusterReport:
    """The result of one run; `commit` is None if no partition has several small files.

    The sizes in the commit are those of the new files.
    """

    commit: timeline.Commit | None
    seconds: float


@contract_errors()
def run(spark: SparkSession, spec: ClusterSpec) -> ClusterReport:
    """Merge the small files of each partition that has several of them.

    The next writer rolls back an interrupted clustering. Raises LeaseHeldError and LeaseLostError, without a commit.
    """
    started = time.monotonic()
    table = spec.table
    store = table.location.store()
    with table.writer_lease(store) as held:
        lake_table = table.lake_table(store)
        if lake_table.recover(spark) is None:
            return ClusterReport(None, time.monotonic() - started)
        commit = lake_table.cluster(spark, held, spec.small_bytes)
    return ClusterReport(commit, time.monotonic() - started)
