"""purge: remove tombstones from a table with `deletes: hard`, once no older change of their keys can arrive.

A tombstone prevents an older update that is delivered late from restoring its row. It is needed as long as changes may
be delivered late: the replay window. The commit that removes tombstones keeps the checkpoint and adds the newest purged
change to it, so that jobs/apply/fold.py detects an older change that arrives after the purge.
"""

from __future__ import annotations

import time
from dataclasses import dataclass

from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.table.event_order import ORDER_COLUMN
from cdc_lake.jobs.apply.upsert_spec import UpsertSpec
from cdc_lake.jobs.executor_errors import contract_errors


@dataclass(frozen=True)
class PurgeSpec:
    """The table, and the minimum age of tombstones to remove (seconds by the source's clock)."""

    table: UpsertSpec
    window_seconds: int


@dataclass(frozen=True)
class PurgeReport:
    """The result of one run; if nothing was removed, `instant` is None and `why` has the reason."""

    instant: str | None
    purged: int
    purged_to: str | None
    seconds: float
    why: str = ""


@contract_errors()
def run(spark: SparkSession, spec: PurgeSpec) -> PurgeReport:
    """Remove the tombstones that are older than the window, in one commit.

    A tombstone's age is measured against the newest heartbeat that the table has applied. Both times are of the
    source's clock, so a table that is behind keeps the tombstones that pending changes need. Raises LeaseHeldError and
    LeaseLostError; then nothing is committed.
    """
    started = time.monotonic()
    table = spec.table
    store = table.location.store()
    with table.writer_lease(store) as held:
        lake_table = table.lake_table(store)
        commit = lake_table.recover(spark)
        if commit is None or commit.checkpoint is None or commit.checkpoint.watermark is None:
            why = "the table has not seen a heartbeat of the source yet"
            return PurgeReport(None, 0, None, time.monotonic() - started, why)
        before = commit.checkpoint
        horizon = commit.checkpoint.watermark.source_ts_ms - spec.window_seconds * 1000
        stored = lake_table.rows(spark)
        old = stored.where(F.col("__deleted") & (F.col("__source_ts_ms") < horizon))
        found = old.agg(F.count("*").alias("tombstones"), F.max(ORDER_COLUMN).alias("newest")).first()
        if found is None or found["tombstones"] == 0:
            why = "no tombstone is older than the replay window"
            return PurgeReport(None, 0, before.purged_to, time.monotonic() - started, why)
        after = before.model_copy(
            update={
                "purged_to": max(found["newest"], before.purged_to or ""),
                # Halfway between the horizon and the heartbeat: tolerates clock changes of half the window. Never
                # decreases, even if the window becomes longer, because earlier purges stay in effect.
                "purged_before_ms": max(horizon + spec.window_seconds * 500, before.purged_before_ms or 0),
            }
        )
        rows = old.select(*table.key, *table.partition_by)
        held.check()
        removal = lake_table.write(rows, after, held, operation="delete", previous=commit)
    return PurgeReport(removal.instant, found["tombstones"], after.purged_to, time.monotonic() - started)
