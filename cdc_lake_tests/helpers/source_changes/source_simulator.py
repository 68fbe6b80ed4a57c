"""A simulated PostgreSQL and connector; its transactions overlap and lock the keys they change.

The events are those that Debezium would send. Each contains its commit position, which the product has to derive from
epoch, snapshot and LSN.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from cdc_lake.contract.schema.value_rules import PLACEHOLDER

KEYS = 4
NOTES = (None, "", "a", "ß→🦆", '{"json": [1, "x"]}', "tab\tbreak\nquote\"'", "null")
LABELS = ("true", "first", "last", "first_in_data_collection", "last_in_data_collection")
WRITERS = 3
START = 1_700_000_000_000
"""The source's time at the beginning of a history, in milliseconds."""
DAY = 86_400_000
FAR = 2**62
"""The LSN of the last snapshot in `resnapshots()`, and at the start of the second part in `histories_with_gap()`; the
LSNs before it are lower."""


@dataclass(frozen=True)
class Event:
    """One delivered change: Debezium's fields, the epoch of its manifest, and the true commit position.

    `committed` is the change's position among all changes: the number of the transaction in the commit order, and of
    the change in the transaction. A snapshot row follows every transaction that committed before the snapshot.
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
    toast_omitted: bool = False
    """Whether PostgreSQL omits the note, because it is TOASTed and did not change."""
    source_ts_ms: int = START

    def record(self, shift: int = 0) -> dict[str, Any]:
        """Return the record in the topic, with its key moved by `shift`."""
        gone = self.op == "d"
        return {
            "id": self.key + shift,
            "note": PLACEHOLDER if self.toast_omitted else self.note,
            "qty": self.qty,
            "__op": self.op,
            "__db": "devdb",
            "__schema": "public",
            "__table": "orders",
            "__lsn": self.lsn,
            "__txId": self.txid,
            "__snapshot": self.snapshot,
            # Four values a day, not in commit order, so that a lake that orders by this field first fails the tests.
            "__source_ts_ms": self.source_ts_ms + self.lsn // 8 % 4,
            "__deleted": "true" if gone else "false",
        }


Row = tuple[str | None, int]


@dataclass(frozen=True)
class _Change:
    key: int
    op: str
    lsn: int
    row: Row
    toast_omitted: bool


@dataclass
class _Transaction:
    number: int
    changes: list[_Change] = field(default_factory=list)
    rows: dict[int, Row | None] = field(default_factory=dict)
    """Rows that this transaction changed, by key; None is a deleted row."""


@dataclass
class Source:
    """The table `orders`, its WAL and its connector."""

    lsn: int
    toasts: bool = False
    """Whether the notes are TOASTed and the replica identity omits unchanged ones."""
    rows: dict[int, Row] = field(default_factory=dict)
    open: dict[int, _Transaction] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    commits: int = 0
    begun: int = 0
    epoch: int = -1  # before the first connector
    connected: bool = False
    """Whether a connector is running."""
    now: int = START

    def change(self, writer: int, key: int, other: int, choice: int, row: Row) -> None:
        """Run one statement of a writer; `choice` and the row's existence select the operation.

        Does nothing if another transaction has locked a key.
        """
        if writer not in self.open:
            self.begun += 1
            self.open[writer] = _Transaction(self.begun)
        if any(key in each.rows or other in each.rows for number, each in self.open.items() if number != writer):
            return
        seen = {**self.rows, **self.open[writer].rows}
        before = seen.get(key)
        if before is None:
            self._write(writer, [(key, "c", row)])
        elif choice == 0:
            self._write(writer, [(key, "d", before)])
        elif choice == 1 and other != key and seen.get(other) is None:
            # A change of the primary key is sent as a delete and an insert with one LSN.
            self._write(writer, [(key, "d", before), (other, "c", row)])
        elif self.toasts and choice > 2:
            self._write(writer, [(key, "u", (before[0], row[1]))], toast_omitted=True)
        else:
            self._write(writer, [(key, "u", row)])

    def _write(self, writer: int, changes: list[tuple[int, str, Row]], *, toast_omitted: bool = False) -> None:
        self.lsn += 8
        transaction = self.open[writer]
        for key, op, row in changes:
            transaction.changes.append(_Change(key, op, self.lsn, row, toast_omitted))
            transaction.rows[key] = None if op == "d" else row

    def commit(self, writer: int) -> None:
        """Commit the writer's transaction; a running connector sends its changes."""
        transaction = self.open.pop(writer, None)
        if transaction is None:
            return
        self.commits += 1
        self.lsn += 8
        for place, done in enumerate(transaction.changes):
            if self.connected:
                note, qty = (None, done.row[1]) if done.op == "d" else done.row
                at = (self.commits, place)
                fields = (done.key, done.op, done.lsn, transaction.number, "false", note, qty, done.toast_omitted)
                self.events.append(Event(at, self.epoch, *fields, source_ts_ms=self.now))
        for key, seen in transaction.rows.items():
            if seen is None:
                self.rows.pop(key, None)
            else:
                self.rows[key] = seen

    def connect(self) -> None:
        """Start a connector with the next epoch."""
        self.epoch += 1
        self.connected = True

    def snapshot(self, label: int) -> int:
        """Read all committed rows, while other transactions stay open; return the snapshot's commit position.

        `label` is the index in LABELS of the first row's value of Debezium's `snapshot` field.
        """
        self.commits += 1
        self.lsn += 8
        for place, (key, (note, qty)) in enumerate(sorted(self.rows.items())):
            at, mark = (self.commits, place), LABELS[(label + place) % len(LABELS)]
            self.events.append(
                Event(at, self.epoch, key, "r", self.lsn, self.begun, mark, note, qty, source_ts_ms=self.now)
            )
        return self.commits

    def move(self, lsn: int) -> None:
        """Switch to another cluster: its WAL may begin anywhere, and open transactions are lost."""
        self.open.clear()
        self.lsn = lsn
