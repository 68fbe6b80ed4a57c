"""Which changes a consistent point of the source has seen: the rule by which the oracle tells before from after.

A point is a PostgreSQL snapshot: it sees a transaction if that had ended for everybody when the snapshot was taken.
That is a question of transaction ids and not of places in the WAL: a transaction can write before the point and
commit after it, and its commit record can stand in the WAL while nobody sees it yet (it waits for the disk or for a
synchronous standby). A snapshot names the ids: all below `xmax` have ended, but for those `in_progress`.
"""

from __future__ import annotations

from dataclasses import dataclass

from cdc_lake.contract.table.event_order import Position

XIDS = 1 << 32
"""How many transaction ids 32 bits hold; Debezium's `__txId` is one of them."""


@dataclass(frozen=True)
class Point:
    """One moment of the source, as far as telling changes apart needs it.

    `epoch` is the source's generation at the point. `lsn` is where the WAL stood right after it. `horizon` is an LSN
    before which no transaction wrote that had not ended by the point: the slot's restart_lsn, which the server keeps
    behind every transaction whose commit is still to come. `xmax` and `in_progress` are the snapshot's, in 64 bits;
    the latter are top-level ids, as `__txId` is: what subtransactions write streams under the id at their top.
    A prepared transaction is in progress until it is committed.
    """

    epoch: int
    lsn: int
    horizon: int
    xmax: int
    in_progress: frozenset[int] = frozenset()

    def sees(self, position: Position, xid: int | None) -> bool:
        """Whether a change with this position and 32-bit transaction id is part of the point.

        An earlier epoch had ended before this one began. A snapshot's record is the state at its LSN. For a streamed
        change the id decides. It is told from the one 2^32 earlier by this: the server stops handing out ids 2^31
        after the oldest that is still needed, which is not after the slot's catalog_xmin; so whatever writes behind
        the horizon has an id within 2^31 of `xmax`, on either side. Below the horizon only the ids in progress are
        unseen. A streamed change without an id is not one of Debezium's: only its LSN can be asked.
        """
        if position.epoch < self.epoch:
            return True
        if not position.streamed or xid is None:
            return position.lsn <= self.lsn
        full = self.full_xid(xid)
        if full in self.in_progress:
            return False
        return position.lsn < self.horizon or full < self.xmax

    def full_xid(self, xid: int) -> int:
        """The 64-bit id that ends in these 32 bits and lies within 2^31 of `xmax`."""
        oldest = self.xmax - XIDS // 2
        return oldest + (xid - oldest) % XIDS
