"""The manifest chain stays contiguous, and the number of requests depends only on the number of new manifests."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cdc_lake.contract.errors import (
    ManifestGapError,
    ObjectConflictError,
    ObjectDamagedError,
    RaceLostError,
    TopicRecreatedError,
)
from cdc_lake.contract.objects import chain_id, object_names, stage_state
from cdc_lake.contract.objects.chain import Chain
from cdc_lake_tests.helpers.memory_store import MemoryStore
from cdc_lake_tests.unit.contract.objects.landed import PIPELINE, TOPIC, chain_of, landed, manifest


def key(number: int) -> str:
    """Return the key of a manifest."""
    return object_names.manifest_key(PIPELINE, TOPIC, number)


def chain_of_keys(count: int) -> tuple[MemoryStore, Chain]:
    """Return a chain of empty objects with the keys of manifests, and its store."""
    store = MemoryStore()
    for number in range(1, count + 1):
        store.write(key(number), b"")
    return store, Chain(store, PIPELINE, TOPIC)


@given(st.integers(0, 3000), st.integers(0, 4000))
@settings(max_examples=60)
def test_length_is_correct_for_any_chain_and_hint(count: int, known: int) -> None:
    assert chain_of_keys(count)[1].length(known) == count


@given(st.integers(0, 2000), st.integers(0, 2000))
@settings(max_examples=40)
def test_length_makes_logarithmically_many_requests(known: int, new: int) -> None:
    store, chain = chain_of_keys(known + new)
    assert chain.length(known) == known + new
    empty = {"list": 1} if known + new == 0 else {}
    assert dict(store.requests) == {"get": 1, **empty, "head": store.requests["head"]}
    assert store.requests["head"] <= 2 * math.log2(new + 1) + 3


def test_the_head_costs_the_same_on_any_chain_with_counted_records() -> None:
    costs = []
    for count in (1, 40, 2000):
        store, chain = chain_of(count)
        assert chain.count_records(chain.read(count)) == 0
        store.forget_requests()
        head = Chain(store, PIPELINE, TOPIC).head()
        assert head is not None
        assert head.number == count
        costs.append(dict(store.requests))
    assert costs == [{"get": 3, "head": 2}] * 3


def test_reading_new_manifests_costs_the_same_on_a_longer_chain() -> None:
    costs = {}
    for count in (10, 2500):
        store, chain = chain_of(count)
        assert [each.number for each in chain.since(count - 3)] == [count - 2, count - 1, count]
        costs[count] = dict(store.requests)
    assert costs[10] == costs[2500] == {"get": 4, "list": 1}


def test_counting_records_reads_only_new_manifests() -> None:
    store, chain = chain_of(0)
    for number in range(1, 31):
        item = landed(store, {number: b"{}"})
        chain.append(manifest(number, {0: (number, number + 1) if number > 1 else (0, 2)}, objects=(item,)))
        if number > 25:
            store.forget_requests()
            assert chain.count_records(chain.read(number)) == number
            assert store.requests["get"] <= (30 if number == 26 else 6)
    assert chain.count_records(chain.read(7)) == 7  # an earlier manifest is counted from the first one


def test_a_stored_count_of_another_attempt_or_chain_is_ignored() -> None:
    store, chain = chain_of(3)
    item = landed(store, {30: b"{}", 31: b"{}"})
    chain.append(manifest(4, {0: (30, 40)}, objects=(item,)))
    for change in ({"chain": "old"}, {"attempt": "another"}, {"manifest": 9}, {"records": "many"}):
        known = {"chain": "", "manifest": 4, "attempt": "attempt of 4", "records": 1000}
        stage_state.write(store, object_names.stage_state_key(PIPELINE, "counted", TOPIC), {**known, **change})
        assert Chain(store, PIPELINE, TOPIC).count_records(chain.read(4)) == 2


def test_reading_without_new_manifests_costs_two_requests() -> None:
    store, chain = chain_of(1500)
    assert list(chain.since(1500)) == []
    assert store.total == 2


def test_appending_costs_the_same_on_any_chain() -> None:
    costs = set()
    for count in (1, 2000):
        store, chain = chain_of(count)
        chain.append(manifest(count + 1, {0: (10 * count, 10 * count + 1)}))
        costs.add(store.total)
    assert len(costs) == 1
    assert costs.pop() <= 3


def test_an_empty_chain_has_no_head() -> None:
    store, chain = chain_of(0)
    assert chain.head() is None
    assert list(chain.since(0)) == []
    assert store.objects == {}


def test_appended_manifests_are_read_in_order() -> None:
    _, chain = chain_of(25)
    assert [each.number for each in chain.since(0)] == list(range(1, 26))
    head = chain.head(known=7)
    assert head is not None
    assert (head.number, head.next_offsets()) == (25, {0: 250})


@pytest.mark.parametrize(("first", "problem"), [(31, "a gap"), (29, "an overlap"), (0, "an overlap")])
def test_a_manifest_that_does_not_continue_the_previous_one_is_rejected(first: int, problem: str) -> None:
    store, chain = chain_of(3)
    with pytest.raises(ManifestGapError, match=rf"starts at offset {first} in manifest 4, .* at 30 \({problem}\)"):
        chain.append(manifest(4, {0: (first, 40)}))
    assert len(store.objects) == 3


def test_the_first_manifest_starts_at_offset_0() -> None:
    with pytest.raises(ManifestGapError, match=r"partition 0 starts at offset 5 in manifest 1, .* at 0 \(a gap\)"):
        chain_of(0)[1].append(manifest(1, {0: (5, 10)}))


def test_an_added_partition_starts_at_offset_0() -> None:
    _, chain = chain_of(2)
    with pytest.raises(
        ManifestGapError, match=r"partition 1 starts at offset 1 in manifest 3, but should start at 0 \(a gap\)"
    ):
        chain.append(manifest(3, {0: (20, 30), 1: (1, 5)}))
    chain.append(manifest(3, {0: (20, 30), 1: (0, 5)}))
    chain.append(manifest(4, {0: (30, 30), 1: (5, 9)}))
    assert [each.next_offsets() for each in chain.since(2)] == [{0: 30, 1: 5}, {0: 30, 1: 9}]


def test_a_manifest_without_a_known_partition_is_rejected() -> None:
    _, chain = chain_of(0)
    chain.append(manifest(1, {0: (0, 5), 1: (0, 5)}))
    with pytest.raises(ManifestGapError, match=r"manifest 2 does not contain partition 1\. Nothing"):
        chain.append(manifest(2, {0: (5, 6)}))


def test_a_manifest_of_a_recreated_topic_is_rejected() -> None:
    _, chain = chain_of(3)
    with pytest.raises(TopicRecreatedError, match="cdc-lake resnapshot shop"):
        chain.append(manifest(4, {0: (30, 40)}, topic_id="another"))


def test_readers_reject_a_manifest_of_a_recreated_topic() -> None:
    store, chain = chain_of(3)
    store.write(key(4), manifest(4, {0: (30, 40)}, topic_id="another").encode())
    with pytest.raises(TopicRecreatedError):
        list(chain.since(2))


def test_a_missing_manifest_stops_a_reader() -> None:
    store, chain = chain_of(6)
    del store.objects[key(4)]
    reading = chain.since(1)
    assert [next(reading).number, next(reading).number] == [2, 3]
    with pytest.raises(
        ManifestGapError, match=r"manifest 4 is missing, but manifest 5 exists.* Restore the missing manifest"
    ):
        next(reading)


@pytest.mark.parametrize("missing", [1, 4, 5])
def test_a_missing_manifest_is_not_filled_by_the_next_append(missing: int) -> None:
    """A gap makes the chain look shorter; landing must not commit into it."""
    store, chain = chain_of(6)
    del store.objects[key(missing)]
    start = 10 * (missing - 1)
    with pytest.raises(ManifestGapError, match=f"manifest {missing} is missing, but .* Restore manifest {missing}, or"):
        chain.append(manifest(missing, {0: (start, start + 500)}))
    assert key(missing) not in store.objects


@pytest.mark.parametrize("count", [2, 3, 40])
def test_a_chain_without_its_first_manifest_is_not_taken_as_empty(count: int) -> None:
    """A chain taken as empty would be started again at offset 0."""
    store, chain = chain_of(count)
    del store.objects[key(1)]
    store.forget_requests()
    with pytest.raises(
        ManifestGapError, match=rf"the manifests of topic {TOPIC}: manifest 1 is missing, but .*{2:020d}\.json exists"
    ):
        chain.head()
    assert store.requests["list"] == 1
    with pytest.raises(ManifestGapError, match="manifest 1 is missing, but"):
        chain.append(manifest(1, {0: (0, 10)}))


def test_several_missing_manifests_are_not_filled() -> None:
    store, chain = chain_of(9)
    for number in (4, 5, 6):
        del store.objects[key(number)]
    with pytest.raises(ManifestGapError, match=r"manifest 4 is missing, but"):
        chain.append(manifest(4, {0: (30, 500)}))


def test_a_renewed_chain_is_stored_below_its_own_id() -> None:
    store, chain = chain_of(3)
    first = chain_id.renew(store, PIPELINE)
    later = Chain(store, PIPELINE, TOPIC)
    assert (later.id, later.head()) == (first, None)
    with pytest.raises(
        ManifestGapError, match=f"belongs to chain {first}, but its content to the pipeline's first chain"
    ):
        later.append(manifest(1, {0: (0, 10)}))
    later.append(manifest(1, {0: (0, 7)}, chain=first))
    assert [each.next_offsets() for each in later.since(0)] == [{0: 7}]
    assert chain.head() is not None, "a chain keeps the id that it was read with"
    second = chain_id.renew(store, PIPELINE)
    assert second not in ("", first)
    assert Chain(store, PIPELINE, TOPIC).head() is None


def test_a_manifest_copied_into_another_chain_is_rejected() -> None:
    store, _ = chain_of(1)
    copied = store.objects[key(1)].body
    later = Chain(store, PIPELINE, TOPIC, chain_id.renew(store, PIPELINE))
    store.write(later.key(1), copied)
    with pytest.raises(ManifestGapError, match=r"its key .* belongs to .*, but its content to"):
        list(later.since(0))


def test_a_lost_chain_id_does_not_restart_the_first_chain() -> None:
    """The reset deleted the manifests of the first chain, so that it looks empty."""
    store, _ = chain_of(0)
    later = Chain(store, PIPELINE, TOPIC, chain_id.renew(store, PIPELINE))
    later.append(manifest(1, {0: (0, 7)}, chain=later.id))
    del store.objects[object_names.chain_key(PIPELINE)]
    with pytest.raises(
        ManifestGapError, match=rf"manifest 1 or chains/{PIPELINE}.json is missing, but .*chain={later.id}/"
    ):
        Chain(store, PIPELINE, TOPIC).head()


@pytest.mark.parametrize("body", [b"", b"{}", b'{"chain": "a/b", "began_at": "2024-01-01T00:00:00Z"}'])
def test_a_damaged_chain_id_is_reported_and_can_be_renewed(body: bytes) -> None:
    store, _ = chain_of(0)
    store.write(object_names.chain_key(PIPELINE), body)
    with pytest.raises(ObjectDamagedError, match=r"chains/shop\.json is damaged"):
        Chain(store, PIPELINE, TOPIC).head()
    assert Chain(store, PIPELINE, TOPIC, chain_id.renew(store, PIPELINE)).head() is None


def test_of_two_simultaneous_resets_one_fails() -> None:
    store, _ = chain_of(0)
    store.lose_answers()
    mine = chain_id.renew(store, PIPELINE)
    assert chain_id.current(store, PIPELINE) == mine

    def rival(_: str) -> None:
        store.before_put = None
        chain_id.renew(store, PIPELINE)

    store.before_put = rival
    with pytest.raises(RaceLostError, match="another reset"):
        chain_id.renew(store, PIPELINE)


def test_a_checkpoint_past_the_end_of_the_chain_is_reported() -> None:
    with pytest.raises(ObjectDamagedError, match=r"manifest 9 of topic .* is missing"):
        list(chain_of(3)[1].since(9))


def test_a_manifest_replaced_after_it_was_applied_is_rejected() -> None:
    """The new one may end at another offset, so that the next manifest would skip or repeat records."""
    store, chain = chain_of(3)
    applied = chain.read(3).attempt
    assert list(chain.since(3, applied)) == []
    store.write(key(3), manifest(3, {0: (20, 25)}, attempt="again").encode())
    chain.append(manifest(4, {0: (25, 40)}))
    message = rf"manifest 3 .*: attempt {applied} was applied .* contains attempt again\..*cdc-lake reset shop"
    with pytest.raises(ManifestGapError, match=message):
        list(chain.since(3, applied))


@pytest.mark.parametrize("body", [b"", b"{", b"{}", b'"text"'])
def test_a_damaged_manifest_is_reported_with_its_key(body: bytes) -> None:
    store, chain = chain_of(3)
    store.write(key(2), body)
    with pytest.raises(ObjectDamagedError, match=rf"manifest 2 .*{key(2)} is damaged"):
        list(chain.since(0))


def test_an_append_succeeds_if_only_the_response_was_lost() -> None:
    store, chain = chain_of(3)
    store.lose_answers()
    chain.append(manifest(4, {0: (30, 40)}))
    assert chain.length() == 4


def test_a_manifest_of_another_attempt_wins_the_race_and_is_kept() -> None:
    store, chain = chain_of(3)
    theirs = manifest(4, {0: (30, 35)}, attempt="theirs")

    def rival(manifest_key: str) -> None:
        store.before_put = None
        store.put_new(manifest_key, theirs.encode(), {"attempt": theirs.attempt})

    store.before_put = rival
    with pytest.raises(RaceLostError, match="continues after that manifest"):
        chain.append(manifest(4, {0: (30, 40)}, attempt="ours"))
    assert chain.read(4) == theirs


def test_a_race_that_another_run_won_by_several_manifests_is_no_gap() -> None:
    _, chain = chain_of(3)
    for number in (4, 5):
        chain.append(manifest(number, {0: (number * 10 - 10, number * 10)}, attempt="theirs"))
    with pytest.raises(RaceLostError, match="Cannot commit manifest 4 "):
        chain.append(manifest(4, {0: (30, 40)}, attempt="ours"))


def test_a_busy_key_is_retried() -> None:
    """S3 returns 409 while another put of the same key is in progress; that put may still fail."""
    store, chain = chain_of(3)
    store.be_busy(2)
    chain.append(manifest(4, {0: (30, 40)}))
    assert chain.length() == 4


def test_a_key_that_stays_busy_is_reported() -> None:
    store, chain = chain_of(3)
    store.be_busy(1000)
    with pytest.raises(
        ObjectConflictError, match=r"rejected 6 attempts because the object exists .* a read finds no object"
    ):
        chain.append(manifest(4, {0: (30, 40)}))


def test_temporary_files_in_a_listing_are_ignored() -> None:
    """The local S3 server lists `<key>-<uuid>` during a put, and keeps that file after a kill."""
    store, chain = chain_of(3)
    for number in (2, 4):
        store.write(f"{key(number)}-5b1c9e54-9dc5-4b8e-a5de-6c2a0f0d5b3f", b"half a mani")
    assert [each.number for each in chain.since(0)] == [1, 2, 3]
    assert chain.length() == 3
