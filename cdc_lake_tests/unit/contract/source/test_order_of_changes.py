"""Ordering by (epoch, snapshot, LSN) gives the order of commits for any order of delivery."""

from __future__ import annotations

from collections.abc import Iterable

from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from cdc_lake.contract.table.event_order import Position
from cdc_lake_tests.helpers.source_changes.delivery_orders import Delivery, deliveries, sample, to_sweep
from cdc_lake_tests.helpers.source_changes.histories import content, fold, histories
from cdc_lake_tests.helpers.source_changes.source_simulator import Event
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

EXAMPLES = 300


def position(change: Event) -> str:
    """Return the value of the order column."""
    return Position(change.epoch, change.snapshot == "false", change.lsn).encode()


def upsert(table: dict[int, Event], batch: Iterable[Event]) -> dict[int, Event]:
    """Model of an upsert: take the newest change of each key in the batch, if it is newer than the stored one."""
    newest: dict[int, Event] = {}
    for change in batch:
        if change.key not in newest or position(newest[change.key]) <= position(change):
            newest[change.key] = change
    newer = {
        key: change for key, change in newest.items() if key not in table or position(table[key]) <= position(change)
    }
    return {**table, **newer}


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(deliveries())
def check_deliveries(delivery: Delivery) -> None:
    """Check after every batch that the table equals the fold of the delivered events."""
    table: dict[int, Event] = {}
    delivered: list[Event] = []
    for batch in delivery.batches:
        table = upsert(table, batch)
        delivered.extend(batch)
        expected = fold(delivered)
        assert {key: content(row) for key, row in table.items()} == {k: content(row) for k, row in expected.items()}
    event(f"{len(delivery.batches)} batches")


@settings(max_examples=EXAMPLES, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def check_any_order(data: st.DataObject) -> None:
    """Check the same for events in any order, with mixed epochs."""
    events = data.draw(histories())
    shuffled = data.draw(st.permutations(events))
    batch_end = data.draw(st.integers(0, len(shuffled)))
    table = upsert(upsert({}, shuffled[:batch_end]), shuffled[batch_end:])
    assert {key: content(row) for key, row in table.items()} == {k: content(row) for k, row in fold(events).items()}


def test_the_table_equals_the_fold_for_any_order(count_trials: CountTrials) -> None:
    check_any_order()
    count_trials("histories shuffled, in a model of the upsert", EXAMPLES)


def test_the_table_equals_the_fold_after_every_batch(count_trials: CountTrials) -> None:
    check_deliveries()
    count_trials("deliveries, in a model of the upsert", EXAMPLES)


def test_generated_histories_contain_the_hard_cases() -> None:
    """A generator that stops making the hard cases would keep every test green.

    The bounds are half of what is usual: Hypothesis also draws constants of the modules that are imported, so that a
    seed gives other examples in another process.
    """
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
    assert count(any(a.epoch < b.epoch and a.lsn > b.lsn for a in es for b in es) for es in events) > 10
    assert count(len(set(es)) < len(es) for es in events) > 50
    deleted_and_back = [
        any(a.key == b.key and a.op == "d" and b.op == "c" and a.committed < b.committed for a in es for b in es)
        for es in events
    ]
    assert count(deleted_and_back) > 20


def test_histories_for_sweeps_contain_rows_missing_from_the_snapshot() -> None:
    drawn = sample(600, 1, to_sweep())
    newest = [(fold(each.events()), each.taken) for each in drawn]
    old = [[event for event in found.values() if event.committed[0] < snapshot_lsn] for found, snapshot_lsn in newest]
    assert sum(any(event.op != "d" for event in events) for events in old) > 50
    assert sum(any(event.epoch == 1 for event in events) for events in old) > 10, (
        "rows missing only from the second attempt"
    )
    straddling = [
        any(a.epoch == 1 and a.snapshot == "false" and a.lsn < 2**62 for a in each.events()) for each in drawn
    ]
    assert sum(straddling) > 10, "transactions open across the resnapshot"
