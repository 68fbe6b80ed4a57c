"""The position from which on a Parquet target's view shows rows: the beginning of the newest complete snapshot."""

from __future__ import annotations

from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.source.epochs import Epochs
from cdc_lake.contract.table.event_order import Position, Watermark


def boundary(store: ObjectStore, pipeline: str, landed: Watermark | None) -> str:
    """Return the position of the first row of the newest snapshot that is complete and, by its watermark, landed.

    An older row whose key has no later row was deleted without an event: a snapshot after a lost stream does not have
    it, or only an interrupted attempt at a snapshot read it.
    """
    epochs = Epochs(store, pipeline)
    current = epochs.current()
    for number in range(0 if current is None else current.number, -1, -1):
        completion = epochs.completion(number)
        if completion is None:
            continue
        lsn = completion.snapshot_lsn or 0
        if landed is not None and landed.lsn >= lsn:  # a streamed heartbeat comes after the snapshot's last row
            return Position(number, streamed=False, lsn=lsn).encode()
    return Position(0, streamed=False, lsn=0).encode()
