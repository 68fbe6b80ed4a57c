"""The state of polls: kills, repeats and races leave each row's newest state, and count it once."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lake.contract.errors import ObjectDamagedError, RaceLostError, SourceBrokenError
from cdc_lake.contract.objects.store import StoredObject
from cdc_lake.contract.source.poll_state import Bound, Polls, not_before
from cdc_lake_tests.helpers.memory_store import MemoryStore

START = datetime(2026, 1, 1, tzinfo=UTC)


def at(second: int) -> Bound:
    """Return a bound."""
    return Bound(at=START + timedelta(seconds=second))


def polls(store: MemoryStore | None = None) -> Polls:
    """Return the polls of a table."""
    return Polls(MemoryStore() if store is None else store, "shop", "goods")


def test_a_window_begins_where_the_previous_one_ended() -> None:
    found = polls()
    first = found.complete(found.begin(at(1), "t"))
    assert (first.poll.number, first.poll.lower, first.poll.upper) == (1, None, at(1))
    advanced = found.advance(first, at(5))
    assert (advanced.poll.number, advanced.poll.upper) == (1, at(5))
    second = found.begin(at(9), "t").poll
    assert (second.number, second.lower, second.upper, second.state) == (2, at(5), at(9), "begun")


def test_an_interrupted_poll_keeps_its_number_and_window() -> None:
    found = polls()
    begun = found.begin(at(1), "t")
    assert begun.poll.watermark is None
    assert found.begin(at(7), "t") == begun
    done = found.complete(begun).poll
    assert done.watermark is not None
    assert (done.upper, done.watermark.lsn) == (at(1), 1)


def test_a_bound_never_goes_back() -> None:
    found = polls()
    done = found.complete(found.begin(at(5), "t"))
    assert found.advance(done, at(3)) == done
    assert found.begin(at(2), "t").poll.upper == at(5)


def test_a_reconciliation_takes_a_number_and_no_window() -> None:
    found = polls()
    with pytest.raises(SourceBrokenError, match="its first poll is not complete"):
        found.begin_reconcile("t")
    begun = found.begin(at(5), "t")
    with pytest.raises(SourceBrokenError, match="its last poll is not complete"):
        found.begin_reconcile("t")
    found.complete(begun)
    scan = found.begin_reconcile("t").poll
    assert (scan.number, scan.reached) == (2, at(5))
    assert scan.watermark is not None
    assert scan.watermark.lsn == 1
    after = found.begin(at(9), "t").poll  # it was interrupted
    assert (after.number, after.lower) == (3, at(5))


def test_polls_and_reconciliations_keep_the_epoch() -> None:
    found = polls()
    begun = found.begin(at(5), "t", epoch=2)
    assert begun.poll.epoch == 2
    found.complete(begun)
    scan = found.begin_reconcile("t").poll
    assert (scan.epoch, scan.lower, scan.upper) == (2, at(5), at(5))
    # The first poll of the next epoch reads all rows again.
    after = found.begin(at(9), "t", epoch=3).poll
    assert (after.epoch, after.number, after.lower) == (3, 3, None)


@pytest.mark.parametrize(
    ("new", "last", "raised"), [(7, 5, 7), (5, 7, 7), (None, 7, 7), (7, None, 7), (None, None, None), (0, 7, 7)]
)
def test_the_last_visible_id_never_decreases(new: int | None, last: int | None, raised: int | None) -> None:
    before, after = at(1).model_copy(update={"last_id": last}), at(2).model_copy(update={"last_id": new, "next_id": 9})
    assert not_before(after, before) == at(2).model_copy(update={"last_id": raised, "next_id": 9})


def test_only_one_of_two_pollers_changes_the_state() -> None:
    found = polls()
    begun = found.begin(at(1), "t")
    found.complete(begun)
    with pytest.raises(RaceLostError, match="another poller changed the state"):
        found.complete(begun)


def test_a_lost_answer_is_not_a_lost_race() -> None:
    store = MemoryStore()
    found = polls(store)
    store.lose_answers(2)
    begun = found.begin(at(1), "t")
    store.lose_answers(1)
    assert found.complete(begun).poll.state == "complete"


def test_a_recreated_topic_is_refused() -> None:
    found = polls()
    found.complete(found.begin(at(1), "t"))
    with pytest.raises(SourceBrokenError, match=r"its topic was deleted and re-created \(id t, now u\)"):
        found.begin(at(2), "u")


def test_a_damaged_state_is_not_a_first_poll() -> None:
    store = MemoryStore()
    store.objects[polls().key] = StoredObject(polls().key, b"{", "e", {})
    with pytest.raises(ObjectDamagedError, match=r"_polls/goods\.json is damaged"):
        polls(store).read()


CHANGES = st.tuples(st.just("write"), st.integers(0, 3))
POLLS = st.tuples(st.just("poll"), st.sampled_from(["begun", "part", "sent", "complete"]))
IDLE = st.tuples(st.just("advance"), st.none())


@given(st.lists(st.one_of(CHANGES, POLLS, IDLE), max_size=40))
def test_kills_and_repeats_yield_each_rows_newest_state(steps: list[tuple[str, object]]) -> None:
    found, source, sent = polls(), dict[int, int](), list[tuple[int, int, int]]()
    clock = 0

    def poll(until: str) -> None:
        begun = found.begin(at(clock), "t")
        if until == "begun":
            return
        lower, upper = begun.poll.lower, begun.poll.upper
        rows = [(k, t) for k, t in source.items() if (lower is None or at(t).at >= lower.at) and at(t).at < upper.at]
        sent.extend(
            (key, begun.poll.number, value) for key, value in rows[: len(rows) // 2 if until == "part" else None]
        )
        if until == "complete":
            found.complete(begun)

    for kind, argument in [*steps, ("poll", "complete"), ("poll", "complete")]:
        if kind == "write":
            source[int(str(argument))] = clock  # the value is its time
        elif kind == "poll":
            poll(str(argument))
        elif (last := found.read()) is not None and last.poll.state == "complete":
            changed = [t for t in source.values() if at(t).at >= last.poll.upper.at]
            if not changed:
                found.advance(last, at(clock))
        clock += 1

    by_number = {(key, number): value for key, number, value in sent}
    assert {(key, number, value) for key, number, value in sent} == {(*place, v) for place, v in by_number.items()}
    folded = {key: value for (key, _), value in sorted(by_number.items(), key=lambda item: item[0][1])}
    assert folded == source
