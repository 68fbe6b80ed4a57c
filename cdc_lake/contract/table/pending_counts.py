"""How often in a row a key could not be compared with the source, because the lake had not applied its newest change.

A key that changes all the time is set aside by every run of `equals_source`, and would never be judged; so would one
whose changes the lake never gets. One small object a lake table counts the runs: keys by digest, as few as the job
samples (jobs/verify/report.py).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from cdc_lake.contract.objects import object_names, stage_state
from cdc_lake.contract.objects.store import ObjectStore

MAX_PENDING_RUNS = 5
"""A key that was set aside by this many runs in a row turns the comparison red."""


def count_pending_run(store: ObjectStore, pipeline: str, table: str, digests: Collection[str]) -> Mapping[str, int]:
    """Add one run that set these keys aside; how many runs in a row each of them was. Other keys start again from 0.

    Of two runs at the same moment one counts.
    """
    key = object_names.pending_key(pipeline, table)
    before = stage_state.read(store, key).get("runs", {})
    runs = {digest: int(before.get(digest, 0)) + 1 for digest in digests}
    if runs or before:
        stage_state.write(store, key, {"runs": runs})
    return runs
