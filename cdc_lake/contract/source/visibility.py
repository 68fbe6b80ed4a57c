"""The rule that decides which changes are visible at a consistent point of the source, for `verify`.

A point is a PostgreSQL snapshot: a transaction is visible at the point if it was visible to all sessions when the
snapshot was taken.
Transaction ids decide this. LSNs cannot: a transaction can write before the point and commit after it, and its commit
record can be in the WAL before the transaction is visible, while it waits for the disk or a synchronous standby. A
snapshot consists of ids: all transactions below `xmax` have ended, except those `in_progress`.
"""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lake.contract.table.event_order import Position

XIDS = 1 << 32
"""The number of 32-bit transaction ids; Debezium's `__txId` is one of them."""


@dataclass(frozen=True)
class Point:
    """A consistent point of the source.

    `epoch` is the source's epoch at the point, `lsn` the end of the WAL right after it. Every transaction that wrote
    before the LSN `horizon` had ended at the point: `horizon` is the slot's restart_lsn, which the server keeps before
    the first record of every transaction that is not committed yet. `xmax` and `in_progress` are those of the snapshot,
    as 64-bit ids. `in_progress` contains top-level ids, as `__txId` does: changes of subtransactions are streamed with
    the top-level id. A prepared transaction is in progress until it is committed.
    """

    epoch: int
    lsn: int
    horizon: int
    xmax: int
    in_progress: frozenset[int] = frozenset()

    def sees(self, position: Position, xid: int | None) -> bool:
        """Return whether a change with this position and 32-bit transaction id is visible at the point.

        A change of an earlier epoch is visible: that epoch ended before this one began. A snapshot's row is visible if
        its LSN is not after the point. A row that an incremental snapshot read counts as visible, because a later
        change of the row is streamed and is newer.

        For a streamed change the transaction id decides. 32 bits identify it: the server stops assigning ids 2^31 after
        the oldest id that is still needed, and that id is at most the slot's catalog_xmin. A transaction that writes
        after the horizon therefore has an id within 2^31 of `xmax`, on either side. Before the horizon, every change is
        visible whose id is not in progress. One case is reported wrongly: if the id exactly 2^32 after that of an ended
        transaction is in progress, the change of the ended transaction counts as not visible yet. A streamed change
        without an id does not come from Debezium; its LSN decides.
        """
        if position.epoch < self.epoch or position.incremental:
            return True
        if not position.streamed or xid is None:
            return position.lsn <= self.lsn
        full = self.full_xid(xid)
        if full in self.in_progress:
            return False
        return position.lsn < self.horizon or full < self.xmax

    def full_xid(self, xid: int) -> int:
        """Return the 64-bit id that ends in these 32 bits and is within 2^31 of `xmax`."""
        oldest = self.xmax - XIDS // 2
        return oldest + (xid - oldest) % XIDS
