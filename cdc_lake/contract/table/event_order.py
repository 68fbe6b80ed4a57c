"""The order of a key's changes (docs/decisions/0005-order-column.md): source epoch, snapshot before stream, LSN.

Within one epoch, a snapshot's rows sort before all streamed changes, because a transaction that was open during the
snapshot can be streamed with an LSN lower than the snapshot's. `__source_ts_ms` is not used, because changes can have
equal times.

Rows of an incremental snapshot have no LSN. They sort after the rows of the epoch's first snapshot. Two reads of one
row have equal positions: if the row changed between them, the change was streamed, and sorts after both. Of equal
positions in one batch or view, the record with the higher offset wins.

The order is stored as text of fixed width, which sorts like Position, also as Hudi's ordering field. It is applied
within a batch by jobs/apply/fold.py, against the stored row by jobs/hudi/hudi.properties, and by the view of a Parquet
target (latest_rows.py).
"""

from __future__ import annotations

from dataclasses import dataclass

ORDER_COLUMN = "__order"
INCREMENTAL = "incremental"
"""The value of `__snapshot` in a row that an incremental snapshot read."""
_EPOCH_DIGITS = 6
_LSN_DIGITS = 20
NO_LSN = 10**_LSN_DIGITS - 1
"""The LSN in the position of a row that an incremental snapshot read."""
INCREMENTAL_POSITION = f"-0-{NO_LSN}"
"""The encoded position of a row that an incremental snapshot read, without the epoch."""


@dataclass(frozen=True, order=True)
class Position:
    """The position of a change among all changes of its key."""

    epoch: int
    streamed: bool
    lsn: int

    @property
    def incremental(self) -> bool:
        """Whether an incremental snapshot read the row."""
        return not self.streamed and self.lsn == NO_LSN

    def encode(self) -> str:
        """Return the position as text of 29 characters, which sorts like the position."""
        return f"{self.epoch:0{_EPOCH_DIGITS}d}-{int(self.streamed)}-{self.lsn:0{_LSN_DIGITS}d}"

    @classmethod
    def decode(cls, text: str) -> Position:
        """Parse the text that encode() returns."""
        epoch, streamed, lsn = text.split("-")
        return cls(int(epoch), streamed == "1", int(lsn))


def order_sql(epoch: str, snapshot: str, operation: str, lsn: str) -> str:
    """Return encode() as a Spark SQL expression over the columns of an event.

    Debezium's `snapshot` field is "false" for a streamed change and names the snapshot's step otherwise
    (true, first, last, incremental, …): https://debezium.io/documentation/reference/stable/connectors/postgresql.html.
    A connector that was killed during a chunk of an incremental snapshot also writes `true` for streamed changes, until
    it has finished its next chunk. Therefore a row counts as a snapshot's only if its operation is `r` (read).
    """
    streamed = f"CASE WHEN coalesce({snapshot}, 'false') = 'false' OR {operation} <> 'r' THEN '1' ELSE '0' END"
    position = (
        f"CASE WHEN {snapshot} = '{INCREMENTAL}' AND {operation} = 'r' THEN '{NO_LSN}' "
        f"ELSE lpad(cast({lsn} AS STRING), {_LSN_DIGITS}, '0') END"
    )
    return f"concat(lpad({epoch}, {_EPOCH_DIGITS}, '0'), '-', {streamed}, '-', {position})"


@dataclass(frozen=True)
class Watermark:
    """Commit time and LSN of a heartbeat: a stage with this watermark has all changes that were committed before it.

    For a polled table: the end of the newest complete window, and the poll's number.
    """

    source_ts_ms: int
    lsn: int
