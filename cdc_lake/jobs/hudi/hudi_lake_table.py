"""A Hudi table as jobs/lake_table.py describes: its writes with their recovery, its rows and its services."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from functools import partial

from pyspark.sql import DataFrame, SparkSession

from cdc_lake.contract import failpoints
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.table import failed_writes, history, instants, timeline
from cdc_lake.contract.table.lease import Lease
from cdc_lake.jobs.hudi.key_column import lake_columns
from cdc_lake.jobs.hudi.writer import HudiTable
from cdc_lake.jobs.lake_table import Operation


@dataclass(frozen=True)
class HudiLakeTable:
    """A Hudi table with its store and prefix."""

    store: ObjectStore
    prefix: str
    table: HudiTable

    def rows(self, spark: SparkSession) -> DataFrame:
        """See LakeTable."""
        rows = spark.read.format("hudi").load(self.table.uri)
        return rows.select(*lake_columns(rows))

    def recover(self, spark: SparkSession) -> timeline.Commit | None:
        """See LakeTable: roll back incomplete commits, and delete files of failed writers.

        Only commits that are listed at the start are rolled back, so that a caller that is paused here and loses the
        lease does not undo commits of the next writer. If there is nothing to roll back, makes four list requests.
        Raises LocalTimeError and TableAheadError if the table must not be written.
        """
        instants.require_writable(self.store, self.prefix)
        for instant in failed_writes.incomplete_commits(self.store, self.prefix):
            failpoints.reached("recover.before_rollback")
            # Its writer may have completed it since then, and Hudi rolls back completed commits too.
            if instant in failed_writes.incomplete_commits(self.store, self.prefix):
                self.table.roll_back(spark, instant)
        failed_writes.delete_rolled_back_files(self.store, self.prefix)
        return timeline.last_commit(self.store, self.prefix)

    def write(
        self,
        rows: DataFrame,
        checkpoint: timeline.Checkpoint,
        held: Lease,
        operation: Operation = "upsert",
        *,
        previous: timeline.Commit | None,
        raw_bytes: int | None = None,
    ) -> timeline.Commit:
        """See LakeTable.

        If the write fails because another writer rolled this commit back, deletes the files that were written after the
        rollback. Raises RuntimeError if Hudi reports a commit that is not in the timeline.
        """
        try:
            self.table.write(rows, checkpoint, self._before_commit(held), held.check, operation, raw_bytes)
        except Exception:
            failed_writes.delete_rolled_back_files(self.store, self.prefix)
            raise
        commit = timeline.last_commit(self.store, self.prefix)
        previous_instant = None if previous is None else previous.instant
        if commit is None or commit.checkpoint != checkpoint or commit.instant == previous_instant:
            raise RuntimeError(
                f"Cannot confirm the commit of {self.table.uri}: Hudi reported success, but the timeline has no new "
                f"commit with the checkpoint of manifest {checkpoint.manifest}. Run the job again."
            )
        return commit

    def compact(self, spark: SparkSession, held: Lease) -> timeline.Commit | None:
        """See LakeTable: merge the log files of a merge-on-read table into new base files."""
        pending = failed_writes.pending_compactions(self.store, self.prefix)
        held.check()
        return self._commit(self.table.compact(spark, pending, self._before_commit(held)))

    def cluster(self, spark: SparkSession, held: Lease, small_bytes: int) -> timeline.Commit | None:
        """See LakeTable: merge the small base files of each partition that has several of them."""
        return self._commit(self.table.cluster(spark, small_bytes, self._before_commit(held), held.check))

    def clean(self, spark: SparkSession, held: Lease) -> int:
        """See LakeTable."""
        newest = instants.time_of(history.commits(self.store, self.prefix)[-1])
        only_newest = newest < instants.utc_now() - timedelta(hours=self.table.history_hours)
        # A run that was paused here would delete files of commits that the next writers have superseded meanwhile.
        held.check()
        return self.table.clean(spark, only_newest=only_newest)

    def _commit(self, instant: str | None) -> timeline.Commit | None:
        return None if instant is None else timeline.commit_at(self.store, self.prefix, instant)

    def _before_commit(self, held: Lease) -> Callable[[], None]:
        """Return the function that a writer of the table calls right before it completes a commit.

        The function renews the lease; it raises LeaseLostError. For a merge-on-read table it also waits for the store's
        clock, and raises TableAheadError: Hudi uses the `Last-Modified` of a commit's file, which S3 rounds down to a
        second, as the commit's completion time. It assigns a log file to the newest base file whose instant is not
        later than the completion time of the log file's own base file. If this time were before the instant, Hudi would
        assign the log file to an older base file, and no reader would return its changes.
        """
        if self.table.table_type == "cow":
            return held.secure
        return partial(instants.await_store_clock, self.store, self.prefix, held.claim.key, held.secure)
