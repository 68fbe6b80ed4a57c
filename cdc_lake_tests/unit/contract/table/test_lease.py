"""The lease: one writer at a time, fenced, also with faults of clock and store."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lake.contract.errors import LeaseHeldError, LeaseLostError, StoreUnreachableError
from cdc_lake.contract.objects.store import PreconditionFailedError
from cdc_lake.contract.table import lease
from cdc_lake.contract.table.lease import LeaseRecord
from cdc_lake_tests.helpers.memory_store import MemoryStore
from cdc_lake_tests.pytest_hooks.trial_counts import CountTrials

KEY = "leases/shop/orders.json"
LONG = 3600.0  # longer than the test, so that the thread never renews it


@dataclass
class Clock:
    """A clock that the test sets, in seconds since 1970."""

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
    """Return the content of the lease object."""
    return LeaseRecord.model_validate_json(store.objects[KEY].body)


def test_the_lease_names_its_owner_and_is_released_after_the_block(store: MemoryStore, clock: Clock) -> None:
    with lease.held(store, KEY, "ours", LONG, 0, clock) as found:
        assert record(store) == LeaseRecord(owner="ours", token=1, expires_at=clock.time + LONG)
        found.check()
    assert record(store).expires_at == 0


def test_the_token_increases_with_each_holder(store: MemoryStore, clock: Clock) -> None:
    tokens = []
    for owner in ("one", "other", "one"):
        with lease.held(store, KEY, owner, LONG, 0, clock) as found:
            tokens.append(found.token)
    assert tokens == [1, 2, 3]


def test_a_second_writer_is_refused_and_gets_the_owners_name(
    store: MemoryStore, clock: Clock, ours: lease.Lease
) -> None:
    with (
        pytest.raises(
            LeaseHeldError, match=r"^Cannot take the lease: ours holds leases/shop/orders.json for another 3600 s"
        ),
        lease.held(store, KEY, "theirs", LONG, 0, clock),
    ):
        pytest.fail("two writers hold the lease")
    ours.check()


def test_a_second_writer_waits_for_the_release(store: MemoryStore) -> None:
    tokens: list[int] = []

    def take_lease() -> None:
        with lease.held(store, KEY, "theirs", LONG, 30) as found:
            tokens.append(found.token)

    with lease.held(store, KEY, "ours", LONG, 0):
        waiting_writer = threading.Thread(target=take_lease)
        waiting_writer.start()
        assert tokens == []
    waiting_writer.join(10)
    assert tokens == [2]


def test_an_expired_lease_is_taken_and_its_former_holder_cannot_commit(store: MemoryStore, clock: Clock) -> None:
    def too_slow() -> None:
        with lease.held(store, KEY, "ours", LONG, 0, clock) as ours:
            clock.time += LONG + 1
            with lease.held(store, KEY, "theirs", LONG, 0, clock) as theirs:
                assert theirs.token > ours.token
                ours.check()

    with pytest.raises(LeaseLostError, match="was taken by theirs"):
        too_slow()


def test_an_expired_lease_fails_the_check_until_it_is_renewed(clock: Clock, ours: lease.Lease) -> None:
    clock.time += LONG
    with pytest.raises(LeaseLostError, match="has expired"):
        ours.check()
    ours.renew()
    ours.check()


def test_a_deleted_lease_is_lost(store: MemoryStore, clock: Clock) -> None:
    def lose_lease() -> None:
        with lease.held(store, KEY, "ours", LONG, 0, clock) as ours:
            store.delete([KEY])
            ours.check()

    with pytest.raises(LeaseLostError, match="does not exist any more"):
        lose_lease()


def test_renewing_extends_the_expiry(store: MemoryStore, clock: Clock, ours: lease.Lease) -> None:
    clock.time += LONG - 1
    ours.renew()
    assert record(store).expires_at == clock.time + LONG
    clock.time += LONG - 1
    ours.check()


def test_a_renewal_whose_answer_was_lost_does_not_lose_the_lease(
    store: MemoryStore, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace = store.replace

    def replace_without_answer(key: str, body: bytes, etag: str) -> str:
        replace(key, body, etag)
        raise StoreUnreachableError("no answer")

    with lease.held(store, KEY, "a run", now=clock) as ours:
        monkeypatch.setattr(store, "replace", replace_without_answer)
        with pytest.raises(StoreUnreachableError):
            ours.renew()
        monkeypatch.setattr(store, "replace", replace)
        clock.time += 10
        ours.secure()
    assert lease.holder(store, KEY, clock) is None


def test_a_lease_taken_by_another_writer_is_not_renewed(store: MemoryStore, clock: Clock) -> None:
    def too_slow() -> None:
        with lease.held(store, KEY, "ours", LONG, 0, clock) as ours:
            clock.time += LONG
            with lease.held(store, KEY, "theirs", LONG, 0, clock):
                with pytest.raises(PreconditionFailedError):
                    ours.renew()
                assert record(store).owner == "theirs"

    with pytest.raises(LeaseLostError):
        too_slow()


def test_a_lease_lost_during_the_block_is_reported_at_its_end(store: MemoryStore, clock: Clock) -> None:
    def too_slow() -> None:
        with lease.held(store, KEY, "ours", LONG, 0, clock):
            clock.time += LONG
            with lease.held(store, KEY, "theirs", LONG, 0, clock):
                pass

    with pytest.raises(LeaseLostError, match="both may have written"):
        too_slow()


def test_an_error_of_the_block_takes_precedence(store: MemoryStore, clock: Clock) -> None:
    def fail(lose: bool) -> None:
        with lease.held(store, KEY, "ours", LONG, 0, clock):
            store.delete([KEY] if lose else [])
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail(lose=True)
    with pytest.raises(ZeroDivisionError):
        fail(lose=False)
    assert record(store).expires_at == 0


def test_the_lease_is_renewed_during_the_block(store: MemoryStore) -> None:
    renewed = threading.Event()
    expiries: list[float] = []

    def watch(_: str) -> None:
        expiries.append(record(store).expires_at)
        if len(set(expiries)) > 2:
            renewed.set()

    with lease.held(store, KEY, "ours", 0.15, 0) as found:
        store.before_put = watch
        assert renewed.wait(10)
        found.check()


def test_the_lease_is_renewed_before_it_expires(store: MemoryStore) -> None:
    renewals: list[bool] = []
    twice = threading.Event()

    def watch(_: str) -> None:
        renewals.append(time.time() < record(store).expires_at)
        if len(renewals) == 2:
            twice.set()

    with lease.held(store, KEY, "ours", 1.5, 0):
        store.before_put = watch
        assert twice.wait(10)
    assert renewals[:2] == [True, True]


def test_a_failed_renewal_is_retried(store: MemoryStore) -> None:
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
def test_a_lost_response_does_not_lose_the_lease(store: MemoryStore, clock: Clock, holder_before: bool) -> None:
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
def test_only_the_newest_holder_passes_the_check(count_trials: CountTrials, steps: list[tuple[str, str]]) -> None:
    """Writers acquire, commit, release or sleep past the expiry in any order; tokens of commits never decrease."""
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
    count_trials("steps of writers that compete for a lease", len(steps))


def test_one_of_several_simultaneous_writers_gets_the_lease(store: MemoryStore, count_trials: CountTrials) -> None:
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
    count_trials("races for a lease, one winner each", rounds)


def test_securing_extends_the_lease_to_its_full_length(store: MemoryStore, clock: Clock) -> None:
    with lease.held(store, KEY, "ours", LONG, now=clock) as found:
        clock.time += LONG + 1  # expired, but not taken by another writer
        found.secure()
        assert record(store).expires_at == clock.time + LONG


def test_a_lease_taken_by_another_writer_is_not_secured(store: MemoryStore, clock: Clock) -> None:
    ours = lease._acquire(store, KEY, "ours", LONG, clock)
    clock.time += LONG + 1
    lease._acquire(store, KEY, "theirs", LONG, clock)
    with pytest.raises(LeaseLostError, match=r"of ours \(token 1\) was taken by theirs \(token 2\)\. This run commits"):
        ours.secure()
