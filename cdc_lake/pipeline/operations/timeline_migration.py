"""Switch tables whose instants are in local time to UTC: `cdc-lake migrate`.

A table's properties are changed as soon as its newest instant, interpreted as UTC, is in the past, so that new commits
sort after all existing ones. Until then every writer rejects the table (contract/table/instants.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta

from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import instants, lease
from cdc_lake.pipeline.pipeline import Pipeline
from cdc_lake.pipeline.pipeline_table import PipelineTable


def to_utc(
    pipeline: Pipeline,
    store: ObjectStore,
    owner: str,
    now: instants.Clock = instants.utc_now,
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[str]:
    """Set the timeline's time zone of each Hudi table of the pipeline to UTC; yield a line for each step.

    Waits while a table's newest instant is in the future, at most for the time zone's offset from UTC. Can be
    interrupted and run again at any time. Raises LeaseHeldError while another process writes a table.
    """
    for table in pipeline.hudi_tables:
        yield from (f"{table.lake_table}: {line}" for line in _migrated(table, store, owner, now, sleep))


def _migrated(
    table: PipelineTable, store: ObjectStore, owner: str, now: instants.Clock, sleep: Callable[[float], None]
) -> Iterator[str]:
    zone = instants.zone(store, table.lake_prefix)
    if zone is None:
        yield "the Hudi table does not exist yet"
        return
    if zone == instants.IN_UTC:
        yield "commits are named in UTC already"
        return
    while True:
        with lease.held(store, table.lease_key, owner):
            ahead = instants.ahead(store, table.lake_prefix, now())
            if ahead < timedelta(0):
                instants.set_utc(store, table.lake_prefix)
                break
        yield f"waiting until {now() + ahead:%Y-%m-%d %H:%M:%S} UTC, when the newest commit is in the past"
        sleep(ahead.total_seconds() + 1)
    yield "commits are named in UTC from now on"
