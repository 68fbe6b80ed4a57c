"""Hypothesis strategies for the delivery of a history: batches that are late, early, duplicated or replayed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from cdc_lake_tests.helpers.source_changes.histories import histories, histories_with_gap, resnapshots
from cdc_lake_tests.helpers.source_changes.source_simulator import Event

Batch = Sequence[Event]


@dataclass(frozen=True)
class Delivery:
    """The events of a history as they arrive: batch by batch, out of order, more than once."""

    batches: tuple[Batch, ...]
    taken: int = 0
    """The position of the last epoch's snapshot in the commit order, if a sweep follows, else 0."""

    def events(self) -> list[Event]:
        """Return all events in order of arrival."""
        return [event for batch in self.batches for event in batch]

    def of_epoch(self, epoch: int) -> list[Batch]:
        """Return the batches of one epoch."""
        return [batch for batch in self.batches if batch[0].epoch == epoch]


@st.composite
def deliveries(draw: st.DrawFn) -> Delivery:
    """Cut a history into batches; some events are early or late, are duplicated, or all are replayed.

    A batch belongs to one epoch, as a manifest does: the next epoch begins when all of the previous one has landed.
    """
    events = draw(histories())
    batches: list[Batch] = []
    for epoch in range(max((event.epoch for event in events), default=-1) + 1):
        batches.extend(draw(_delivered([event for event in events if event.epoch == epoch])))
    return Delivery(tuple(batch for batch in batches if batch))


@st.composite
def _delivered(draw: st.DrawFn, events: list[Event]) -> list[Batch]:
    count = draw(st.integers(1, 3))
    cuts = sorted(draw(st.lists(st.integers(0, len(events)), min_size=count - 1, max_size=count - 1)))
    bounds = zip([0, *cuts], [*cuts, len(events)], strict=True)
    batches: list[list[Event]] = [[] for _ in range(count)]
    for number, (low, high) in enumerate(bounds):
        for event in events[low:high]:
            fate = draw(st.integers(0, 7))
            # Move the event into any batch, at any position.
            batch = batches[draw(st.integers(0, count - 1))] if fate == 0 else batches[number]
            batch.insert(draw(st.integers(0, len(batch))) if fate < 3 else len(batch), event)
            if fate in {3, 4}:
                batches[draw(st.integers(0, count - 1))].append(event)
    if draw(st.integers(0, 3)) == 0:  # a replay of everything from the first offset
        batches.append(list(events))
    return [tuple(batch) for batch in batches]


@st.composite
def in_order(draw: st.DrawFn) -> Delivery:
    """Deliver a history with omitted values in the order in which it was sent, as one partition of a topic does.

    An earlier change cannot provide an omitted value if it arrives later, so only events that were already delivered
    are repeated: one event or all of them.
    """
    sent = draw(histories(toasts=True, epochs=(1,)))
    cut = draw(st.integers(0, len(sent)))
    first, rest = sent[:cut], sent[cut:]
    again = draw(st.lists(st.sampled_from(first), max_size=3)) if first else []
    batches = [first, [*again, *rest], sent if draw(st.booleans()) else []]
    return Delivery(tuple(tuple(batch) for batch in batches if batch))


@st.composite
def to_sweep(draw: st.DrawFn) -> Delivery:
    """Deliver a history whose stream was lost; the new epoch's first batch contains its whole snapshot.

    A sweep follows that batch. Events of the snapshot, those of its interrupted attempt included, sometimes arrive
    again after the sweep.
    """
    events, taken = draw(resnapshots())
    snapshot = [event for event in events if event.epoch == 1 and event.snapshot != "false"]
    streamed = [event for event in events if event.epoch == 1 and event.snapshot == "false"]
    cut = draw(st.integers(0, len(streamed)))
    first = draw(st.permutations([*snapshot, *streamed[:cut]]))
    again = draw(st.lists(st.sampled_from(snapshot), max_size=3)) if snapshot else []
    before = draw(_delivered([event for event in events if event.epoch == 0]))
    after = draw(_delivered([*again, *streamed[cut:]]))
    return Delivery(tuple(tuple(batch) for batch in (*before, first, *after) if batch), taken)


@st.composite
def to_purge(draw: st.DrawFn, days: int) -> Delivery:
    """Deliver a history with a pause of this many days before a purge; the first two batches contain what precedes it.

    Some of these events arrive again after the pause, which is later than any replay window allows.
    """
    early, late = draw(histories_with_gap(days))
    cut = draw(st.integers(0, len(early)))
    again = draw(st.lists(st.sampled_from(early), max_size=3)) if early else []
    batches = [early[:cut], early[cut:], *draw(_delivered([*again, *late]))]
    return Delivery(tuple(tuple(batch) for batch in batches if batch))


def sample(count: int, number: int, strategy: st.SearchStrategy[Delivery] | None = None) -> list[Delivery]:
    """Draw this many distinct deliveries from a seed, for tests that run many at once.

    Hypothesis repeats simple examples: of 1,500 draws, 1,180 are distinct.
    """
    found: dict[Delivery, None] = {}

    @seed(number)
    @settings(
        max_examples=2 * count,
        database=None,
        deadline=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(deliveries() if strategy is None else strategy)
    def collect(one: Delivery) -> None:
        found[one] = None

    collect()
    assert len(found) >= count, f"seed {number}: {len(found)} of {2 * count} deliveries are distinct"
    return list(found)[:count]


def smaller(delivery: Delivery, fails: Callable[[Delivery], bool], runs: int) -> Delivery:
    """Return a delivery that still fails, with as few events as `runs` attempts can find."""
    place = 0
    while runs and place < len(delivery.events()):
        tried = _without(delivery, place)
        runs -= 1
        if fails(tried):
            delivery = tried
        else:
            place += 1
    return delivery


def _without(delivery: Delivery, place: int) -> Delivery:
    batches = []
    for batch in delivery.batches:
        batches.append(tuple(event for index, event in enumerate(batch) if index != place))
        place -= len(batch)
    return replace(delivery, batches=tuple(batch for batch in batches if batch))
