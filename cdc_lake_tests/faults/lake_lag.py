"""How far the lake is behind the source, over time: now less the commit time of the newest heartbeat that it has."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from cdc_lake.contract.table.event_order import Watermark
from cdc_lake.pipeline import table_progress
from cdc_lake.pipeline.source_health import topic_state
from cdc_lake_tests.faults.fault_environment import Bench

_EVERY_SECONDS = 2.0


class LagWatch:
    """Seconds of lag at each look, while the block lasts. While nothing can be asked, what was seen last grows older.

    A watermark that goes back is a fault of its own: `backwards` are those.
    """

    def __init__(self, bench: Bench) -> None:
        self._bench = bench
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="lag", daemon=True)
        self._newest: Watermark | None = None
        self.seconds: list[float] = []
        self.backwards: list[tuple[Watermark, Watermark]] = []
        self.checkpoints: set[int] = set()
        """The manifests that a commit was seen to end with: commits, but for those between two looks."""
        self.blind = 0
        """Looks at which something that had to be asked was down."""

    def __enter__(self) -> LagWatch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(_EVERY_SECONDS):
            try:
                self._look()
            except Exception:  # noqa: BLE001 - whatever is down just now: it is looked for again
                self.blind += 1
            if self._newest is not None:
                self.seconds.append(time.time() - self._newest.source_ts_ms / 1000)

    def _look(self) -> None:
        bench = self._bench
        state = topic_state.now(bench.resources["kafka"], bench.table)
        found = table_progress.lake_watermark(bench.store, bench.table, state)
        checkpoint = table_progress.checkpoint(bench.store, bench.table)
        if checkpoint is not None:
            self.checkpoints.add(checkpoint.manifest)
        if found is None:
            return
        if self._newest is not None and found.lsn < self._newest.lsn:
            self.backwards.append((self._newest, found))
        self._newest = found


def percentile(values: Sequence[float], share: float) -> float:
    """The value below which this share of the values lies; 0 for none."""
    return sorted(values)[min(len(values) - 1, int(len(values) * share))] if values else 0.0
