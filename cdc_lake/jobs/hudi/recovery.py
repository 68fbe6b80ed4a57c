"""Roll back failed writes of a table, write a commit, and read the commit back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from cdc_lake.contract import failpoints
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import failed_writes, instants, timeline
from cdc_lake.contract.table.lease import Lease
from cdc_lake.jobs.hudi.writer import HudiTable, Operation


def recover(spark: SparkSession, store: ObjectStore, prefix: str, table: HudiTable) -> timeline.Commit | None:
    """Roll back incomplete commits, delete files of failed writers, and return the newest commit.

    Returns None if the table does not exist. Use the returned commit's checkpoint, not one that was read earlier: a
    paused writer may have completed a commit since. The caller must hold the table's lease. Only commits that are
    listed at the start are rolled back, so that a caller that is paused here and loses the lease does not undo commits
    of the next writer. If there is nothing to roll back, makes four list requests. Raises LocalTimeError and
    TableAheadError if the table must not be written.
    """
    instants.require_writable(store, prefix)
    for instant in failed_writes.incomplete_commits(store, prefix):
        failpoints.reached("recover.before_rollback")
        # Its writer may have completed it since then, and Hudi rolls back completed commits too.
        if instant in failed_writes.incomplete_commits(store, prefix):
            table.roll_back(spark, instant)
    failed_writes.delete_rolled_back_files(store, prefix)
    return timeline.last_commit(store, prefix)


def before_commit(store: ObjectStore, prefix: str, table: HudiTable, held: Lease) -> Callable[[], None]:
    """Return the function that a writer of the table calls right before it completes a commit.

    The function renews the lease; it raises LeaseLostError. For a merge-on-read table it also waits for the store's
    clock, and raises TableAheadError: Hudi uses the `Last-Modified` of a commit's file, which S3 rounds down to a
    second, as the commit's completion time. It assigns a log file to the newest base file whose instant is not later
    than the completion time of the log file's own base file. If this time were before the instant, Hudi would assign
    the log file to an older base file, and no reader would return its changes.
    """
    if table.table_type == "cow":
        return held.secure
    return partial(instants.await_store_clock, store, prefix, held.claim.key, held.secure)


def write(
    store: ObjectStore,
    prefix: str,
    table: HudiTable,
    rows: DataFrame,
    checkpoint: timeline.Checkpoint,
    held: Lease,
    operation: Operation = "upsert",
    *,
    previous: timeline.Commit | None,
    raw_bytes: int | None = None,
) -> timeline.Commit:
    """Write rows and checkpoint (see HudiTable.write()), and return the commit as read back.

    `previous` is the table's newest commit. If the write fails because another writer rolled this commit back, deletes
    the files that were written after the rollback. `held` is the table's lease: without it, the commit read back could
    be another writer's. Raises RuntimeError if Hudi reports a commit that is not in the timeline.
    """
    try:
        table.write(rows, checkpoint, before_commit(store, prefix, table, held), held.check, operation, raw_bytes)
    except Exception:
        failed_writes.delete_rolled_back_files(store, prefix)
        raise
    commit = timeline.last_commit(store, prefix)
    previous_instant = None if previous is None else previous.instant
    if commit is None or commit.checkpoint != checkpoint or commit.instant == previous_instant:
        raise RuntimeError(
            f"Cannot confirm the commit of {table.uri}: Hudi reported success, but the timeline has no new commit with "
            f"the checkpoint of manifest {checkpoint.manifest}. Run the job again."
        )
    return commit
