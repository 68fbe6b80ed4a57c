"""One commit of a table, made sure of: what a failed writer left is undone before, by the next writer and by itself as
far as it can, and what Hudi says it did is read back.
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from cdc_lake.contract import failpoints
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import failed_writes, instants, timeline
from cdc_lake.jobs.hudi.writer import HudiTable, Operation


def recover(spark: SparkSession, store: ObjectStore, prefix: str, table: HudiTable) -> None:
    """Roll back what was begun and never completed, and delete strays; nothing to do costs three listings.

    Call it under the table's lease, and read the checkpoint after it: a commit that was begun may be completed
    meanwhile. What it rolls back was begun by then, so that a caller that is paused here and loses the lease undoes
    nothing of the next writer's. Raises LocalTimeError and TableAheadError where nothing may be written.
    """
    instants.require_writable(store, prefix)
    for instant in failed_writes.incomplete_commits(store, prefix):
        failpoints.reached("recover.before_rollback")
        # Its writer can have completed it since: Hudi rolls back completed commits too.
        if instant in failed_writes.incomplete_commits(store, prefix):
            table.roll_back(spark, instant)
    failed_writes.delete_rolled_back_files(store, prefix)


def write(
    store: ObjectStore,
    prefix: str,
    table: HudiTable,
    rows: DataFrame,
    checkpoint: timeline.Checkpoint,
    before_commit: Callable[[], None],
    operation: Operation = "upsert",
) -> timeline.Commit:
    """Write rows and checkpoint (see HudiTable.write()), and read back the commit that has them.

    Where that fails, delete what was written after the next writer had rolled it back. Call it under the table's lease:
    after it, the newest commit can be another writer's. Raises RuntimeError where Hudi says that it has committed, and
    the timeline does not show it.
    """
    before = timeline.last_commit(store, prefix)
    try:
        table.write(rows, checkpoint, before_commit, operation)
    except Exception:
        failed_writes.delete_rolled_back_files(store, prefix)
        raise
    commit = timeline.last_commit(store, prefix)
    if commit is None or commit.checkpoint != checkpoint or (before is not None and commit.instant == before.instant):
        raise RuntimeError(f"Hudi reported success, but {table.uri} has no new commit with checkpoint {checkpoint}")
    return commit
