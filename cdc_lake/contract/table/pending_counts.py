"""Count the consecutive runs in which `equals_source` could not compare a key, because its newest change was pending.

A key can be pending because it changes all the time, or because its changes never reach the lake; a single run cannot
distinguish the two. One small object per lake table counts the runs by the digest of the key, for the keys that the job
samples (jobs/verify/report.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.contract.objects.store import ObjectStore

MAX_PENDING_RUNS = 5
"""The check fails for a key that was pending in this many consecutive runs."""


def count_pending_run(store: ObjectStore, pipeline: str, table: str, digests: Collection[str]) -> Mapping[str, int]:
    """Count one run in which these keys were pending; return the number of consecutive runs of each.

    The counts of all other keys are reset to 0. If two runs are concurrent, only one of them is counted.
    """
    key = object_names.pending_counts_key(pipeline, table)
    before = stage_state.read(store, key).get("runs", {})
    runs = {digest: int(before.get(digest, 0)) + 1 for digest in digests}
    if runs or before:
        stage_state.write(store, key, {"runs": runs})
    return runs
