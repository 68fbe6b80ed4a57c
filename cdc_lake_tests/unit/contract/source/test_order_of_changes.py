"""The order that the lake goes by (epoch, snapshot, LSN) finds the order of commits, whatever the delivery did."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from cdc_lake.contract.table.event_order import Position
from cdc_lake_tests.delivery_orders import Delivery, deliveries, sample, to_sweep
from cdc_lake_tests.histories import content, fold, histories
from cdc_lake_tests.source_simulator import Event
from cdc_lake_tests.trial_counts import Tried

EXAMPLES = 300


def position(change: Event) -> str:
    """The order column's value."""
    return Position(change.epoch, change.snapshot == "false", change.lsn).encode()


def merged(table: dict[int, Event], batch: Iterable[Event]) -> dict[int, Event]:
    """What an upsert does, in a few lines: the newest of the batch, then the newer of it and what is stored."""
    newest: dict[int, Event] = {}
    for change in batch:
        if change.key not in newest or position(newest[change.key]) <= position(change):
            newest[change.key] = change
    kept = {
        key: change for key, change in newest.items() if key not in table or position(table[key]) <= position(change)
    }
    return {**table, **kept}


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(deliveries())
def check(delivery: Delivery) -> None:
    """The property."""
    table: dict[int, Event] = {}
    delivered: list[Event] = []
    for batch in delivery.batches:
        table = merged(table, batch)
        delivered.extend(batch)
        expected = fold(delivered)
        assert {key: content(row) for key, row in table.items()} == {k: content(row) for k, row in expected.items()}
    event(f"{len(delivery.batches)} batches")


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def check_any_order(data: st.DataObject) -> None:
    """The property, for events that arrive in any order at all, epochs mixed."""
    events = data.draw(histories())
    shuffled = data.draw(st.permutations(events))
    cut = data.draw(st.integers(0, len(shuffled)))
    table = merged(merged({}, shuffled[:cut]), shuffled[cut:])
    assert {key: content(row) for key, row in table.items()} == {k: content(row) for k, row in fold(events).items()}


def test_the_table_is_the_fold_whatever_the_order(tried: Tried) -> None:
    check_any_order()
    tried("histories shuffled, in a model of the upsert", EXAMPLES)


def test_the_table_is_the_fold_after_every_batch(tried: Tried) -> None:
    check()
    tried("deliveries, in a model of the upsert", EXAMPLES)


def test_what_is_drawn_has_what_it_is_about() -> None:
    """A generator that stops making the hard cases would keep every test green."""
    drawn = sample(300, number=1)
    events = [each.events() for each in drawn]
    first = [next((e for e in each if e.snapshot != "false"), None) for each in events]

    def count(found: Iterable[bool]) -> int:
        return sum(1 for each in found if each)

    pairs = list(zip(events, first, strict=True))
    assert count(
        any(e.snapshot == "false" and s and e.epoch == s.epoch and e.lsn < s.lsn for e in es) for es, s in pairs
    )
    assert count(
        any(a.lsn == b.lsn and a.key != b.key and a.op == "d" and b.op == "c" for a in es for b in es) for es in events
    )
    assert count(any(a.epoch < b.epoch and a.lsn > b.lsn for a in es for b in es) for es in events) > 20
    assert count(len(set(es)) < len(es) for es in events) > 100
    deleted_and_back = [
        any(a.key == b.key and a.op == "d" and b.op == "c" and a.committed < b.committed for a in es for b in es)
        for es in events
    ]
    assert count(deleted_and_back) > 50


def test_what_is_drawn_to_be_swept_has_what_a_snapshot_leaves_out() -> None:
    drawn = sample(600, 1, to_sweep())
    newest = [(fold(each.events()), each.taken) for each in drawn]
    old = [[event for event in found.values() if event.committed[0] < taken] for found, taken in newest]
    assert sum(any(event.op != "d" for event in events) for events in old) > 50
    assert sum(any(event.epoch == 1 for event in events) for events in old) > 10, "left out by the second attempt only"
    straddling = [
        any(a.epoch == 1 and a.snapshot == "false" and a.lsn < 2**62 for a in each.events()) for each in drawn
    ]
    assert sum(straddling) > 10, "transactions open across the resnapshot"
