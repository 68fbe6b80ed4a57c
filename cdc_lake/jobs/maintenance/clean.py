"""clean: delete the files that belong only to states before a table's history, and archive their commits.

Writes clean their table too. Without this job, a table that is no longer written would keep its old files forever.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyspark.sql import SparkSession

from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import history
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.executor_errors import contract_errors


@dataclass(frozen=True)
class CleanSpec:
    """The table to clean."""

    table: UpsertSpec


@dataclass(frozen=True)
class CleanReport:
    """The result of one run. An archived commit is in the table's archive and not in its timeline any more."""

    files_deleted: int
    bytes_deleted: int
    commits_archived: int
    seconds: float


@contract_errors()
def run(spark: SparkSession, spec: CleanSpec) -> CleanReport:
    """Clean the table; the next run completes an interrupted one. Raises LeaseHeldError and LeaseLostError."""
    started = time.monotonic()
    table = spec.table
    store = table.location.store()
    with table.writer_lease(store) as held:
        lake_table = table.lake_table(store)
        if lake_table.recover(spark) is None:
            return CleanReport(0, 0, 0, time.monotonic() - started)
        stored, commits = _data_bytes(store, table.prefix), history.commits(store, table.prefix)
        deleted = lake_table.clean(spark, held)
        freed = stored - _data_bytes(store, table.prefix)
        archived = len(commits) - len(history.commits(store, table.prefix))
    return CleanReport(deleted, freed, archived, time.monotonic() - started)


def _data_bytes(store: ObjectStore, prefix: str) -> int:
    """Return the bytes of the table's data files."""
    return sum(item.size for item in store.scan(prefix) if "/.hoodie/" not in item.key)
