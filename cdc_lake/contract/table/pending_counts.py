"""Count the consecutive runs in which `equals_source` could not compare a key, because its newest change was pending.

Each run skips a key that changes all the time, and also a key whose changes never reach the lake. One small object per
lake table counts these runs by the digest of the key, for the keys that the job samples (jobs/verify/report.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.contract.objects.store import ObjectStore

MAX_PENDING_RUNS = 5
"""The check fails for a key that was pending in this many consecutive runs."""


def count_pending_run(store: ObjectStore, pipeline: str, table: str, digests: Collection[str]) -> Mapping[str, int]:
    """Count one run in which these keys were pending; return the number of consecutive runs of each.

    Other keys start again from 0. Of two concurrent runs only one counts.
    """
    key = object_names.pending_key(pipeline, table)
    before = stage_state.read(store, key).get("runs", {})
    runs = {digest: int(before.get(digest, 0)) + 1 for digest in digests}
    if runs or before:
        stage_state.write(store, key, {"runs": runs})
    return runs
