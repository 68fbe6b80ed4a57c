"""The order of a key's changes (design, section 5): source epoch, snapshot before stream, LSN.

Within one epoch, a snapshot's rows are older than anything streamed: a transaction that was open across
the snapshot can stream with a lower LSN than the snapshot's. `__source_ts_ms` alone does not order (ties).
The order is stored as text of fixed width: text, Hudi's ordering field and Python's tuples sort the same.
"""

from __future__ import annotations

from dataclasses import dataclass

ORDER_COLUMN = "__order"
_EPOCH_DIGITS = 6
_LSN_DIGITS = 20


@dataclass(frozen=True, order=True)
class Position:
    """The position of a change among all changes of its key."""

    epoch: int
    streamed: bool
    lsn: int

    def encode(self) -> str:
        """Return a text of 29 characters that sorts like the position."""
        return f"{self.epoch:0{_EPOCH_DIGITS}d}-{int(self.streamed)}-{self.lsn:0{_LSN_DIGITS}d}"

    @classmethod
    def decode(cls, text: str) -> Position:
        """Return the position from encode()'s text."""
        epoch, streamed, lsn = text.split("-")
        return cls(int(epoch), streamed == "1", int(lsn))


def order_sql(epoch: str, snapshot: str, lsn: str) -> str:
    """Return encode() as a Spark SQL expression over the columns of an event.

    Debezium's `snapshot` field is "false" for a streamed change and names the snapshot's step otherwise
    (true, first, last, …): https://debezium.io/documentation/reference/stable/connectors/postgresql.html.
    """
    streamed = f"CASE WHEN coalesce({snapshot}, 'false') = 'false' THEN '1' ELSE '0' END"
    return (
        f"concat(lpad({epoch}, {_EPOCH_DIGITS}, '0'), '-', {streamed}, '-', "
        f"lpad(cast({lsn} AS STRING), {_LSN_DIGITS}, '0'))"
    )


@dataclass(frozen=True)
class Watermark:
    """Commit time and LSN of a heartbeat: a stage with this watermark has all that the source committed before."""

    source_ts_ms: int
    lsn: int
