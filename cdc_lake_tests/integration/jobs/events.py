"""Histories of rows and ways to deliver them, made from a seed; and the fold that says what a table must hold.

The fold is plain Python over cdc_lake/contract/position.py: it shares no code with the Spark job but the order.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from cdc_lake.contract.position import Position
from cdc_lake.contract.schema import Column

COLUMNS = (
    Column(name="id", type="integer", nullable=False),
    Column(name="note", type="text"),
    Column(name="qty", type="bigint"),
)
KEY = ("id",)
NOTES = (None, "", "a", "ß→🦆", '{"json": [1, "x"]}', "tab\tbreak\nquote\"'", "null")
COMPARED = ("note", "qty", "__op", "__lsn", "__txid", "__snapshot", "__source_ts_ms", "__deleted", "__order")


@dataclass(frozen=True)
class Change:
    """One change of one row, as the source committed it."""

    epoch: int
    event: dict[str, Any]

    @property
    def position(self) -> Position:
        """Where it stands."""
        return Position(self.epoch, self.event["__snapshot"] == "false", self.event["__lsn"])


Batch = list[Change]


def event(key: int | None, op: str, lsn: int, snapshot: str = "false", **values: object) -> dict[str, Any]:
    """A record as Debezium's flattening writes it."""
    return {
        "id": key,
        "note": None,
        "qty": 1,
        **values,
        "__op": op,
        "__db": "devdb",
        "__schema": "public",
        "__table": "orders",
        "__lsn": lsn,
        "__txId": lsn // 3,
        "__snapshot": snapshot,
        # Four values for all there is: whoever orders by it is wrong.
        "__source_ts_ms": 1_700_000_000_000 + lsn % 4,
        "__deleted": "true" if op == "d" else "false",
    }


def histories(dice: Random, keys: int) -> list[list[Change]]:
    """A history for each key: snapshot rows, inserts, updates, deletes, inserts again, over one or two epochs.

    A snapshot reads a row at an LSN that streamed changes of the row can lie before and after: a transaction
    that was open across it streams with a lower one. It can be told twice, if it was interrupted.
    """
    lsns = dice.sample(range(100, 100 + keys * 20), keys * 12)
    return [_history(dice, key, sorted(lsns[key * 12 : (key + 1) * 12])) for key in range(keys)]


def _history(dice: Random, key: int, lsns: list[int]) -> list[Change]:
    changes: list[Change] = []
    for epoch in range(dice.choice([1, 1, 1, 2])):
        # A later epoch is another slot or cluster: its LSNs can begin anywhere.
        taken = sorted(dice.sample(lsns, dice.randint(1, 5)))
        reads = dice.choice([0, 0, 1, 2])
        for step in range(min(reads, len(taken))):
            lsn = taken[step] + dice.choice([0, 5_000])
            label = dice.choice(["true", "first", "last", "first_in_data_collection"])
            changes.append(Change(epoch, event(key, "r", lsn, label, note=dice.choice(NOTES))))
        alive = reads > 0
        for lsn in taken:
            op = dice.choice("uud") if alive else "c"
            qty = dice.randint(-(2**63), 2**63 - 1)
            changes.append(Change(epoch, event(key, op, lsn, note=dice.choice(NOTES), qty=qty)))
            alive = op != "d"
    return changes


def deliveries(dice: Random, told: Sequence[Sequence[Change]], batches: int, repeated: float) -> list[Batch]:
    """All changes in batches of any order: early, late, twice, and some once more at the very end."""
    changes = [change for history in told for change in history]
    found: list[Batch] = [[] for _ in range(batches)]
    for change in changes:
        dice.choice(found).append(change)
        while dice.random() < repeated:
            dice.choice(found).append(change)
    found[-1].extend(dice.sample(changes, len(changes) // 4))
    for batch in found:
        dice.shuffle(batch)
    return found


def fold(changes: Iterable[Change]) -> dict[object, tuple[object, ...]]:
    """What a table must hold: for each key its newest change, COMPARED by column."""
    newest: dict[object, Change] = {}
    for change in changes:
        key = change.event["id"]
        if key not in newest or newest[key].position < change.position:
            newest[key] = change
    return {key: _row(change) for key, change in newest.items()}


def held(rows: Iterable[dict[str, Any]]) -> dict[object, tuple[object, ...]]:
    """What a table holds, as fold() spells it; a key that stands there twice is an error."""
    found: dict[object, tuple[object, ...]] = {}
    for row in rows:
        assert row["id"] not in found, f"key {row['id']} stands in the table twice"
        found[row["id"]] = tuple(row[name] for name in COMPARED)
    return found


def _row(change: Change) -> tuple[object, ...]:
    wire = {name.lower(): value for name, value in change.event.items()}
    typed = {**wire, "__deleted": wire["__deleted"] == "true", "__order": change.position.encode()}
    return tuple(typed[name] for name in COMPARED)
