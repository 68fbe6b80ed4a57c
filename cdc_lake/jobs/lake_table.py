"""The interface between the jobs and a table format; jobs/hudi/hudi_lake_table.py implements it for Hudi.

Another format needs a class with these methods, which UpsertSpec.lake_table() returns, and functions that read its
commits, as contract/table/timeline.py does for Hudi (docs/decisions/0056-table-format-interface.md).
"""

from __future__ import annotations

from typing import Literal, Protocol

from pyspark.sql import DataFrame, SparkSession

from cdc_lake.contract.table.lease import Lease
from cdc_lake.contract.table.timeline import Checkpoint, Commit

Operation = Literal["upsert", "bulk_insert", "delete", "insert_overwrite_table"]


class LakeTable(Protocol):
    """A lake table. The caller of each method, except rows(), holds the table's lease, which is `held`."""

    def rows(self, spark: SparkSession) -> DataFrame:
        """Return the newest state of the table, with the lake's columns."""

    def recover(self, spark: SparkSession) -> Commit | None:
        """Undo writes that did not complete; return the newest commit, None if the table does not exist.

        Use the returned commit's checkpoint, not one that was read earlier: a paused writer may have completed a commit
        since.
        """

    def write(
        self,
        rows: DataFrame,
        checkpoint: Checkpoint,
        held: Lease,
        operation: Operation = "upsert",
        *,
        previous: Commit | None,
        raw_bytes: int | None = None,
    ) -> Commit:
        """Write rows and checkpoint in one atomic commit, and return the commit as read back.

        The lease is renewed right before the commit completes; raises LeaseLostError if it is lost. The first write
        creates the table. `previous` is the table's newest commit. `raw_bytes` are the bytes of the raw objects with
        the rows, which the commit stores too.
        """

    def compact(self, spark: SparkSession, held: Lease) -> Commit | None:
        """Merge changes into the files that fast readers read; return the commit, None if there was nothing to merge.

        Completes a compaction that was interrupted. The commit keeps the checkpoint.
        """

    def cluster(self, spark: SparkSession, held: Lease, small_bytes: int) -> Commit | None:
        """Merge files below `small_bytes`; return the commit, which keeps the checkpoint, None if there are few."""

    def clean(self, spark: SparkSession, held: Lease) -> int:
        """Delete the files that no state of the table's history needs; return their number. Archives old commits."""
