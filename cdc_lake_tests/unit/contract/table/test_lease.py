"""The lease: one writer at a time, fenced, with faults of clock and store."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lake.contract.errors import LeaseHeldError, LeaseLostError
from cdc_lake.contract.objects.store import PreconditionFailedError
from cdc_lake.contract.table import lease
from cdc_lake.contract.table.lease import LeaseRecord
from cdc_lake_tests.memory_store import MemoryStore
from cdc_lake_tests.trial_counts import Tried

KEY = "leases/shop/orders.json"
LONG = 3600.0  # renewed by hand only: the thread's turn comes after the test


@dataclass
class Clock:
    """Seconds since the epoch, as the test says."""

    time: float = 1000.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def store() -> MemoryStore:
    return MemoryStore()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def ours(store: MemoryStore, clock: Clock) -> Iterator[lease.Lease]:
    with lease.held(store, KEY, "ours", LONG, 0, clock) as found:
        yield found


def record(store: MemoryStore) -> LeaseRecord:
    """What the lease object says."""
    return LeaseRecord.model_validate_json(store.objects[KEY].body)


def test_it_says_who_has_it_and_is_free_after_the_block(store: MemoryStore, clock: Clock) -> None:
    with lease.held(store, KEY, "ours", LONG, 0, clock) as found:
        assert record(store) == LeaseRecord(owner="ours", token=1, expires_at=clock.time + LONG)
        found.check()
    assert record(store).expires_at == 0


def test_the_token_grows_with_each_holder(store: MemoryStore, clock: Clock) -> None:
    tokens = []
    for owner in ("one", "other", "one"):
        with lease.held(store, KEY, owner, LONG, 0, clock) as found:
            tokens.append(found.token)
    assert tokens == [1, 2, 3]


def test_another_writer_is_refused_and_told_who_has_it(store: MemoryStore, clock: Clock, ours: lease.Lease) -> None:
    with (
        pytest.raises(LeaseHeldError, match=r"^ours writes here and holds leases/shop/orders.json for another 3600 s"),
        lease.held(store, KEY, "theirs", LONG, 0, clock),
    ):
        pytest.fail("two have it")
    ours.check()


def test_another_writer_waits_for_the_release(store: MemoryStore) -> None:
    took: list[int] = []

    def wait() -> None:
        with lease.held(store, KEY, "theirs", LONG, 30) as found:
            took.append(found.token)

    with lease.held(store, KEY, "ours", LONG, 0):
        waiting = threading.Thread(target=wait)
        waiting.start()
        assert took == []
    waiting.join(10)
    assert took == [2]


def test_an_expired_lease_is_taken_and_its_holder_may_not_commit(store: MemoryStore, clock: Clock) -> None:
    def too_slow() -> None:
        with lease.held(store, KEY, "ours", LONG, 0, clock) as ours:
            clock.time += LONG + 1
            with lease.held(store, KEY, "theirs", LONG, 0, clock) as theirs:
                assert theirs.token > ours.token
                ours.check()

    with pytest.raises(LeaseLostError, match="was taken by theirs"):
        too_slow()


def test_an_expired_lease_that_nobody_took_does_not_count_until_it_is_renewed(clock: Clock, ours: lease.Lease) -> None:
    clock.time += LONG
    with pytest.raises(LeaseLostError, match="has expired"):
        ours.check()
    ours.renew()
    ours.check()


def test_a_lease_that_was_deleted_is_lost(store: MemoryStore, clock: Clock) -> None:
    def unlucky() -> None:
        with lease.held(store, KEY, "ours", LONG, 0, clock) as ours:
            store.delete([KEY])
            ours.check()

    with pytest.raises(LeaseLostError, match="is gone"):
        unlucky()


def test_renewing_pushes_the_expiry_out(store: MemoryStore, clock: Clock, ours: lease.Lease) -> None:
    clock.time += LONG - 1
    ours.renew()
    assert record(store).expires_at == clock.time + LONG
    clock.time += LONG - 1
    ours.check()


def test_a_lease_that_was_taken_is_not_renewed(store: MemoryStore, clock: Clock) -> None:
    def too_slow() -> None:
        with lease.held(store, KEY, "ours", LONG, 0, clock) as ours:
            clock.time += LONG
            with lease.held(store, KEY, "theirs", LONG, 0, clock):
                with pytest.raises(PreconditionFailedError):
                    ours.renew()
                assert record(store).owner == "theirs"

    with pytest.raises(LeaseLostError):
        too_slow()


def test_losing_it_unnoticed_until_the_end_is_said(store: MemoryStore, clock: Clock) -> None:
    def too_slow() -> None:
        with lease.held(store, KEY, "ours", LONG, 0, clock):
            clock.time += LONG
            with lease.held(store, KEY, "theirs", LONG, 0, clock):
                pass

    with pytest.raises(LeaseLostError, match="both may have written"):
        too_slow()


def test_the_blocks_own_error_comes_first(store: MemoryStore, clock: Clock) -> None:
    def fail(lose: bool) -> None:
        with lease.held(store, KEY, "ours", LONG, 0, clock):
            store.delete([KEY] if lose else [])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail(lose=True)
    with pytest.raises(ZeroDivisionError):
        fail(lose=False)
    assert record(store).expires_at == 0


def test_it_is_renewed_while_the_block_works(store: MemoryStore) -> None:
    renewed = threading.Event()
    seen: list[float] = []

    def watch(_: str) -> None:
        seen.append(record(store).expires_at)
        if len(set(seen)) > 2:
            renewed.set()

    with lease.held(store, KEY, "ours", 0.15, 0) as found:
        store.before_put = watch
        assert renewed.wait(10)
        found.check()


def test_a_renewal_that_failed_is_tried_again(store: MemoryStore) -> None:
    failures = iter([OSError("no route"), PreconditionFailedError(KEY)])
    renewed = threading.Event()

    def fail(_: str) -> None:
        error = next(failures, None)
        if error is not None:
            raise error
        renewed.set()

    with lease.held(store, KEY, "ours", 0.6, 0) as found:
        store.before_put = fail
        assert renewed.wait(10)
        found.check()
    assert record(store).expires_at == 0


@pytest.mark.parametrize("holder_before", [False, True])
def test_a_lost_answer_to_taking_it_is_no_loss(store: MemoryStore, clock: Clock, holder_before: bool) -> None:
    if holder_before:
        with lease.held(store, KEY, "before", LONG, 0, clock):
            pass
    store.lose_answers()
    with lease.held(store, KEY, "ours", LONG, 0, clock) as found:
        found.check()
        store.lose_answers()
        found.renew()
        found.check()
        found.renew()
        store.lose_answers()
    assert record(store) == LeaseRecord(owner="ours", token=1 + holder_before, expires_at=0)


@given(st.lists(st.tuples(st.sampled_from("ABC"), st.sampled_from(["take", "work", "end", "sleep"])), max_size=60))
@settings(max_examples=150)
def test_of_any_writers_only_the_newest_passes_the_check(tried: Tried, steps: list[tuple[str, str]]) -> None:
    """Writers take it, commit, end or sleep past the expiry in any order: commits have tokens that never fall."""
    store, clock = MemoryStore(), Clock()
    held: dict[str, lease.Lease] = {}
    committed: list[int] = []
    for owner, step in steps:
        mine = held.get(owner)
        if step == "sleep":
            clock.time += 40
        elif step == "take" and mine is None:
            try:
                held[owner] = lease._acquire(store, KEY, owner, 60, clock)
            except LeaseHeldError:
                assert record(store).expires_at > clock.time
        elif step == "work" and mine is not None:
            try:
                mine.check()
                committed.append(mine.token)
            except LeaseLostError:
                assert record(store).token != mine.token or record(store).expires_at <= clock.time
        elif step == "end" and mine is not None:
            del held[owner]
            mine._thread.start()
            try:
                mine.__exit__(None, None, None)
            except LeaseLostError:
                assert record(store).token > mine.token
    assert committed == sorted(committed)
    tried("steps of writers that compete for a lease", len(steps))


def test_two_writers_at_the_same_moment_one_wins(store: MemoryStore, tried: Tried) -> None:
    rounds = 50
    for _ in range(rounds):
        start, wins = threading.Barrier(4), list[lease.Lease]()

        def take(name: str, start: threading.Barrier = start, wins: list[lease.Lease] = wins) -> None:
            start.wait()
            try:
                wins.append(lease._acquire(store, KEY, name, LONG, lambda: 1000.0))
            except LeaseHeldError:
                return

        writers = [threading.Thread(target=take, args=(f"writer {number}",)) for number in range(4)]
        for each in writers:
            each.start()
        for each in writers:
            each.join()
        assert len(wins) == 1
        wins[0]._thread.start()
        wins[0].__exit__(None, None, None)
    assert record(store).token == rounds
    tried("races for a lease, one winner each", rounds)


def test_a_secured_lease_lasts_for_its_whole_length(store: MemoryStore, clock: Clock) -> None:
    with lease.held(store, KEY, "ours", LONG, now=clock) as found:
        clock.time += LONG + 1  # expired, and nobody took it
        found.secure()
        assert record(store).expires_at == clock.time + LONG


def test_a_lease_that_another_one_took_is_not_secured(store: MemoryStore, clock: Clock) -> None:
    ours = lease._acquire(store, KEY, "ours", LONG, clock)
    clock.time += LONG + 1
    lease._acquire(store, KEY, "theirs", LONG, clock)
    with pytest.raises(LeaseLostError, match=r"of ours \(token 1\) was taken by theirs \(token 2\): this run commits"):
        ours.secure()
