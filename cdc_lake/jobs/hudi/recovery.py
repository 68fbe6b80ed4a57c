"""Roll back failed writes of a table, write a commit, and read the commit back."""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import DataFrame, SparkSession

from cdc_lake.contract import failpoints
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import failed_writes, instants, timeline
from cdc_lake.jobs.hudi.writer import HudiTable, Operation


def recover(spark: SparkSession, store: ObjectStore, prefix: str, table: HudiTable) -> None:
    """Roll back incomplete commits and delete files of failed writers; costs three listings if there are none.

    The caller must hold the table's lease, and read the checkpoint afterwards: a pending commit may be completed in
    the meantime. Only commits that are listed at the start are rolled back, so that a caller that is paused here and
    loses the lease does not undo commits of the next writer. Raises LocalTimeError and TableAheadError if the table
    must not be written.
    """
    instants.require_writable(store, prefix)
    for instant in failed_writes.incomplete_commits(store, prefix):
        failpoints.reached("recover.before_rollback")
        # Its writer may have completed it since then, and Hudi rolls back completed commits too.
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
    """Write rows and checkpoint (see HudiTable.write()), and return the commit as read back.

    If the write fails, deletes files that were written after another writer rolled the commit back. The caller must
    hold the table's lease; without it the newest commit can be another writer's. Raises RuntimeError if Hudi reports a
    commit that is not in the timeline.
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
