"""Histories of a source, for Hypothesis to draw; and the fold that judges the lake.

A history is a little PostgreSQL that runs: transactions that overlap and lock the keys they change, a connector whose
snapshot falls between them, a later connector (the next epoch) that snapshots again. Each event knows when it
committed. The fold goes by that alone: it shares no rule and no code with the product, which has to find the same
order from epoch, snapshot and LSN.

Here: histories, the fold. Not here: how they arrive (deliveries.py), carrying them to a table (integration/jobs/).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from cdc_lake.contract.values import PLACEHOLDER

KEYS = 4
NOTES = (None, "", "a", "ß→🦆", '{"json": [1, "x"]}', "tab\tbreak\nquote\"'", "null")
_LABELS = ("true", "first", "last", "first_in_data_collection", "last_in_data_collection")
_WRITERS = 3


@dataclass(frozen=True)
class Event:
    """One delivered change: Debezium's fields, the epoch of its manifest, and what only the source knows.

    `committed` is the place of its change among all: the number of the transaction in the order of commits, and of
    the change in it. A snapshot's row stands behind every transaction that committed before it.
    """

    committed: tuple[int, int]
    epoch: int
    key: int
    op: str
    lsn: int
    txid: int
    snapshot: str
    note: str | None
    qty: int
    left_out: bool = False
    """Whether PostgreSQL leaves the note out, which is TOASTed and did not change."""

    def record(self, shift: int = 0) -> dict[str, Any]:
        """What the topic holds of it, its key moved by `shift`."""
        gone = self.op == "d"
        return {
            "id": self.key + shift,
            "note": PLACEHOLDER if self.left_out else self.note,
            "qty": self.qty,
            "__op": self.op,
            "__db": "devdb",
            "__schema": "public",
            "__table": "orders",
            "__lsn": self.lsn,
            "__txId": self.txid,
            "__snapshot": self.snapshot,
            # Four values for all there is: whoever orders by it is wrong.
            "__source_ts_ms": 1_700_000_000_000 + self.lsn % 4,
            "__deleted": "true" if gone else "false",
        }


Row = tuple[str | None, int]


@dataclass(frozen=True)
class _Change:
    key: int
    op: str
    lsn: int
    row: Row
    left_out: bool


@dataclass
class _Transaction:
    number: int
    changes: list[_Change] = field(default_factory=list)
    rows: dict[int, Row | None] = field(default_factory=dict)  # what it sees otherwise than the others


@dataclass
class _Source:
    """The table `orders`, its WAL and its connector."""

    lsn: int
    toasts: bool = False
    """Whether its notes are TOASTed, and its replica identity leaves them out where they did not change."""
    rows: dict[int, Row] = field(default_factory=dict)
    open: dict[int, _Transaction] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    commits: int = 0
    begun: int = 0
    epoch: int = -1  # before the first connector

    def change(self, writer: int, key: int, other: int, what: int, row: Row) -> None:
        """One statement of a writer: which one, `what` says and the row's being there; a locked key is left alone."""
        if writer not in self.open:
            self.begun += 1
            self.open[writer] = _Transaction(self.begun)
        if any(key in each.rows or other in each.rows for number, each in self.open.items() if number != writer):
            return
        seen = {**self.rows, **self.open[writer].rows}
        before = seen.get(key)
        if before is None:
            self._write(writer, [(key, "c", row)])
        elif what == 0:
            self._write(writer, [(key, "d", before)])
        elif what == 1 and other != key and seen.get(other) is None:
            # A change of primary key is told as a delete and an insert, under one LSN.
            self._write(writer, [(key, "d", before), (other, "c", row)])
        elif self.toasts and what > 2:
            self._write(writer, [(key, "u", (before[0], row[1]))], left_out=True)
        else:
            self._write(writer, [(key, "u", row)])

    def _write(self, writer: int, changes: list[tuple[int, str, Row]], *, left_out: bool = False) -> None:
        self.lsn += 8
        transaction = self.open[writer]
        for key, op, row in changes:
            transaction.changes.append(_Change(key, op, self.lsn, row, left_out))
            transaction.rows[key] = None if op == "d" else row

    def commit(self, writer: int) -> None:
        """The writer's transaction is durable; a connector that runs sends its changes."""
        transaction = self.open.pop(writer, None)
        if transaction is None:
            return
        self.commits += 1
        self.lsn += 8
        for place, done in enumerate(transaction.changes):
            if self.epoch >= 0:
                note, qty = (None, done.row[1]) if done.op == "d" else done.row
                at = (self.commits, place)
                told = (done.key, done.op, done.lsn, transaction.number, "false", note, qty, done.left_out)
                self.events.append(Event(at, self.epoch, *told))
        for key, seen in transaction.rows.items():
            if seen is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = seen

    def connect(self, label: int, again: bool) -> None:
        """A connector starts: snapshot at a point that open transactions straddle, told twice if interrupted."""
        self.epoch += 1
        self.commits += 1
        for _ in range(2 if again else 1):
            self.lsn += 8
            for place, (key, (note, qty)) in enumerate(sorted(self.rows.items())):
                snapshot = _LABELS[(label + place) % len(_LABELS)]
                self.events.append(
                    Event((self.commits, place), self.epoch, key, "r", self.lsn, self.begun, snapshot, note, qty)
                )

    def move(self, lsn: int) -> None:
        """Another cluster takes over: its WAL may begin anywhere; open transactions are lost with the old one."""
        self.open.clear()
        self.lsn = lsn


_ROWS = st.tuples(st.sampled_from(NOTES), st.integers(-(2**63), 2**63 - 1))
_KEYS = st.integers(0, KEYS - 1)
_STATEMENT = st.tuples(st.integers(0, _WRITERS - 1), _KEYS, _KEYS, st.integers(0, 5), _ROWS, st.booleans())
_STATEMENTS = st.lists(_STATEMENT, min_size=1, max_size=12)


@st.composite
def histories(draw: st.DrawFn, *, toasts: bool = False, epochs: Sequence[int] = (1, 1, 1, 2, 3)) -> list[Event]:
    """All events of one source with KEYS keys, in the order in which they are sent."""
    source = _Source(lsn=draw(st.integers(1, 2**62)), toasts=toasts)
    for epoch in range(draw(st.sampled_from(epochs))):
        # What happens before a connector starts, to be seen in its snapshot only. Between two connectors nothing is
        # deleted: that is what `cdc-lake resnapshot` repairs, and no delivery of events.
        before = draw(st.lists(_STATEMENT, max_size=6))
        if epoch and draw(st.booleans()):
            source.move(draw(st.integers(1, 2**62)))
        if epoch == 0:
            _run(source, before)
        source.connect(draw(st.integers(0, len(_LABELS) - 1)), again=draw(st.booleans()))
        _run(source, draw(_STATEMENTS))
    for writer in range(_WRITERS):
        source.commit(writer)
    return source.events


def _run(source: _Source, statements: Iterable[tuple[int, int, int, int, Row, bool]]) -> None:
    for writer, key, other, what, row, commit in statements:
        source.change(writer, key, other, what, row)
        if commit:
            source.commit(writer)


def fold(events: Iterable[Event]) -> Mapping[int, Event]:
    """What a table must hold after these events, by key: the change that committed last, a delete's tombstone too."""
    newest: dict[int, Event] = {}
    for event in events:
        if event.key not in newest or newest[event.key].committed <= event.committed:
            # A snapshot that was interrupted tells a row twice: the same row, whichever LSN it was read at.
            newest[event.key] = event
    return newest


def content(event: Event) -> tuple[object, ...]:
    """What readers see of a row."""
    return (event.note, event.qty, event.op == "d")
