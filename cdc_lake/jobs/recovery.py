"""What a failed writer leaves in a table, undone: by the next writer, and by itself as far as it can.

Here: when to undo. Not here: what there is to undo (contract/leftovers.py), and undoing a commit (hudi.py).
"""

from __future__ import annotations

from collections.abc import Callable

from pyspark.sql import SparkSession

from cdc_lake.contract import leftovers
from cdc_lake.contract.store import ObjectStore
from cdc_lake.jobs.hudi import HudiTable


def recover(spark: SparkSession, store: ObjectStore, prefix: str, table: HudiTable) -> None:
    """Roll back what was begun and never completed, and delete strays; nothing to do costs two listings.

    Call it under the table's lease. What it rolls back was begun by then, so that a caller that is paused here and
    loses the lease undoes nothing of the next writer's.
    """
    begun = leftovers.begun(store, prefix)
    if begun:
        table.roll_back(spark, begun)
    leftovers.sweep(store, prefix)


def write(store: ObjectStore, prefix: str, act: Callable[[], None]) -> None:
    """Write; where that fails, delete what was written after the next writer had rolled it back."""
    try:
        act()
    except Exception:
        leftovers.sweep(store, prefix)
        raise
