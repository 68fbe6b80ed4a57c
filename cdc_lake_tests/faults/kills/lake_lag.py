"""The lake's lag behind the source over time: now minus the commit time of the newest heartbeat in the lake."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from cdc_lake.contract.table import timeline
from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.source_health import topic_state
from cdc_lake_tests.faults.northwind_stack import NorthwindStack

_EVERY_SECONDS = 2.0


class LagWatch:
    """Reads the lag in seconds at intervals during the block; if a reading fails, the age of the last watermark counts.

    `backwards` are the watermarks that went back, which is a fault.
    """

    def __init__(self, stack: NorthwindStack) -> None:
        self._stack = stack
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lag", daemon=True)
        self._newest: Watermark | None = None
        self.seconds: list[float] = []
        self.backwards: list[tuple[Watermark, Watermark]] = []
        self.checkpoints: set[int] = set()
        """The last manifests of the commits that were read; commits between two readings are missing."""
        self.failed_measurements = 0
        """Readings that failed because a component was down."""

    def __enter__(self) -> LagWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(_EVERY_SECONDS):
            try:
                self._read()
            except Exception:  # noqa: BLE001 - any component may be down; it is read again
                self.failed_measurements += 1
            if self._newest is not None:
                self.seconds.append(time.time() - self._newest.source_ts_ms / 1000)

    def _read(self) -> None:
        stack = self._stack
        state = topic_state.current(stack.resources["kafka"], stack.table, stack.store)
        found = table_progress.lake_watermark(stack.store, stack.table, state)
        commit = timeline.last_commit(stack.store, stack.table.lake_prefix)
        if commit is not None and commit.checkpoint is not None:
            self.checkpoints.add(commit.checkpoint.manifest)
        if found is None:
            return
        if self._newest is not None and found.lsn < self._newest.lsn:
            self.backwards.append((self._newest, found))
        self._newest = found


def percentile(values: Sequence[float], share: float) -> float:
    """Return the percentile of values for a share; 0 without values."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0
