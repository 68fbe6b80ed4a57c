"""Hypothesis strategies for histories of a source, and the fold that gives the expected lake.

In a history the connector's snapshot falls between transactions; a later connector (the next epoch) takes another
snapshot. The fold uses the commit order only: it shares no rule and no code with the product.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hypothesis import strategies as st

from cdc_lake_tests.helpers.source_changes.source_simulator import (
    DAY,
    FAR,
    KEYS,
    LABELS,
    NOTES,
    START,
    WRITERS,
    Event,
    Row,
    Source,
)

_ROWS = st.tuples(st.sampled_from(NOTES), st.integers(-(2**63), 2**63 - 1))
_KEYS = st.integers(0, KEYS - 1)
_STATEMENT = st.tuples(st.integers(0, WRITERS - 1), _KEYS, _KEYS, st.integers(0, 5), _ROWS, st.booleans())
_STATEMENTS = st.lists(_STATEMENT, min_size=1, max_size=12)
_LABEL = st.integers(0, len(LABELS) - 1)
_ATTEMPTS = st.sampled_from((1, 2))
_SOME = st.sets(_KEYS, max_size=KEYS)


@st.composite
def histories(draw: st.DrawFn, *, toasts: bool = False, epochs: Sequence[int] = (1, 1, 1, 2, 3)) -> list[Event]:
    """Draw all events of a source with KEYS keys, in the order in which they are sent."""
    source = Source(lsn=draw(st.integers(1, 2**62)), toasts=toasts)
    for epoch in range(draw(st.sampled_from(epochs))):
        # What happens before a connector starts is visible only in its snapshot. Between two connectors nothing is
        # deleted: `cdc-lake resnapshot` repairs that, and no delivery of events can.
        before = draw(st.lists(_STATEMENT, max_size=6))
        if epoch and draw(st.booleans()):
            source.move(draw(st.integers(1, 2**62)))
        if epoch == 0:
            _run(source, before)
        source.connect()
        label = draw(_LABEL)
        for _ in range(draw(_ATTEMPTS)):  # an interrupted snapshot is sent twice
            source.snapshot(label)
        _run(source, draw(_STATEMENTS))
    _commit_all(source)
    return source.events


@st.composite
def resnapshots(draw: st.DrawFn) -> tuple[list[Event], int]:
    """Draw a history whose stream was lost, and the position of the new snapshot in the commit order.

    No event reports the changes made meanwhile, also those between two attempts at that snapshot. The snapshot's LSN
    is FAR in all histories, because a sweep takes one LSN for its table.
    """
    source = Source(lsn=draw(st.integers(1, FAR // 2)))
    _run(source, draw(st.lists(_STATEMENT, max_size=6)))
    source.connect()
    source.snapshot(draw(_LABEL))
    _run(source, draw(_STATEMENTS))
    source.connected = False
    _run(source, draw(_STATEMENTS))
    _delete(source, draw(_SOME))
    source.epoch += 1
    if draw(st.booleans()):
        source.snapshot(draw(_LABEL))
        _run(source, draw(_STATEMENTS))
        _delete(source, draw(_SOME))
    source.lsn = FAR - 8
    taken = source.snapshot(draw(_LABEL))
    source.connected = True
    _run(source, draw(_STATEMENTS))
    _commit_all(source)
    return source.events, taken


@st.composite
def histories_with_gap(draw: st.DrawFn, days: int) -> tuple[list[Event], list[Event]]:
    """Draw a history in two parts with this many days between them; some transactions are open across the gap.

    The second part starts at LSN FAR in all histories.
    """
    source = Source(lsn=draw(st.integers(1, FAR // 2)))
    source.connect()
    source.snapshot(0)
    _run(source, draw(_STATEMENTS))
    source.commit(0)
    _delete(source, draw(_SOME))
    count = len(source.events)
    source.lsn, source.now = FAR, START + days * DAY
    _run(source, draw(_STATEMENTS))
    _commit_all(source)
    return source.events[:count], source.events[count:]


def _run(source: Source, statements: Iterable[tuple[int, int, int, int, Row, bool]]) -> None:
    for writer, key, other, choice, row, commit in statements:
        source.change(writer, key, other, choice, row)
        if commit:
            source.commit(writer)


def _delete(source: Source, keys: Iterable[int]) -> None:
    """Let another writer delete the rows that are not locked."""
    for key in sorted(keys):
        if key in source.rows:
            source.change(WRITERS, key, key, 0, source.rows[key])
            source.commit(WRITERS)


def _commit_all(source: Source) -> None:
    for writer in range(WRITERS):
        source.commit(writer)


def fold(events: Iterable[Event]) -> Mapping[int, Event]:
    """Return the expected rows by key: the change that committed last, tombstones included."""
    newest: dict[int, Event] = {}
    for event in events:
        if event.key not in newest or newest[event.key].committed <= event.committed:
            newest[event.key] = event
    return newest


def content(event: Event) -> tuple[object, ...]:
    """Return what readers see of a row."""
    return (event.note, event.qty, event.op == "d")
