"""The offsets to land: spans that start at the chain's end, or the error."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lake.contract.errors import OffsetsExpiredError, TopicRecreatedError
from cdc_lake.contract.objects.manifest import LastRecord, Manifest, Span
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.jobs.landing import land
from cdc_lake_tests.unit.contract.objects.landed import PIPELINE, TOPIC, TOPIC_ID, manifest


def spec(ends: Mapping[int, int], begins: Mapping[int, int] | None = None, head: int = 1) -> land.LandSpec:
    """A run that read these offsets after the manifest of this number."""
    return land.LandSpec(
        location=S3Location("bucket"),
        pipeline=PIPELINE,
        topic=TOPIC,
        topic_id=TOPIC_ID,
        begins=begins or dict.fromkeys(ends, 0),
        ends=ends,
        chain="",
        head=head,
        kafka={},
    )


def head(ends: Mapping[int, int], committed_at: datetime | None = None) -> Manifest:
    """A chain's end."""
    return manifest(1, {partition: (0, end) for partition, end in ends.items()}, committed_at=committed_at)


def spans(before: Manifest | None, of: land.LandSpec) -> dict[int, tuple[int, int]]:
    """pending() as pairs by partition."""
    return {span.partition: (span.first, span.next) for span in land.pending(before, of)}


def test_everything_is_pending_at_first() -> None:
    assert spans(None, spec({0: 10, 1: 0})) == {0: (0, 10), 1: (0, 0)}


@given(st.dictionaries(st.integers(0, 5), st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1))
def test_it_starts_where_the_chain_ends_and_what_it_gives_follows(landed_and_new: dict[int, tuple[int, int]]) -> None:
    before = head({p: first for p, (first, _) in landed_and_new.items()})
    found = spans(before, spec({p: first + new for p, (first, new) in landed_and_new.items()}))
    assert found == {p: (first, first + new) for p, (first, new) in landed_and_new.items()}


def test_an_added_partition_starts_at_0() -> None:
    assert spans(head({0: 5}), spec({0: 9, 1: 4})) == {0: (5, 9), 1: (0, 4)}


def test_what_expired_unlanded_is_said_by_offset() -> None:
    with pytest.raises(OffsetsExpiredError, match="partition 1: offsets 5 to 7 expired before they were landed"):
        land.pending(head({0: 5, 1: 5}), spec({0: 9, 1: 9}, begins={0: 5, 1: 8}))


def test_what_expired_after_it_was_landed_is_no_loss() -> None:
    assert spans(head({0: 5}), spec({0: 9}, begins={0: 5})) == {0: (5, 9)}
    assert spans(head({0: 9}), spec({0: 9}, begins={0: 9})) == {0: (9, 9)}


def test_expiry_before_the_first_landing_is_said_too() -> None:
    with pytest.raises(OffsetsExpiredError, match="offsets 0 to 2 expired"):
        land.pending(None, spec({0: 9}, begins={0: 3}))


def test_a_topic_of_another_id_is_refused() -> None:
    with pytest.raises(TopicRecreatedError, match=r"was deleted and re-created .*cdc-lake resnapshot shop"):
        land.pending(head({0: 5}), replace(spec({0: 9}), topic_id="another"))


def test_a_topic_that_lost_its_end_is_refused() -> None:
    with pytest.raises(TopicRecreatedError, match="partition 0 ends at offset 3, but offsets up to 5 are landed"):
        land.pending(head({0: 5}), spec({0: 3}))


def test_a_topic_that_lost_a_partition_is_refused() -> None:
    with pytest.raises(TopicRecreatedError, match="partition 1 ends at offset 0"):
        land.pending(head({0: 5, 1: 5}), spec({0: 9}))


def test_what_another_run_landed_meanwhile_is_not_taken_for_a_loss() -> None:
    """The ends were read before the other run committed: nothing is left here, and nothing is wrong."""
    assert spans(head({0: 8, 1: 5, 2: 3}), spec({0: 6, 1: 7}, head=0)) == {0: (8, 8), 1: (5, 7), 2: (3, 3)}


@pytest.mark.parametrize("days", [-1, 1])
def test_the_clocks_of_landers_may_differ(days: int) -> None:
    """What counts is which manifest was there when the ends were read, not when it says that it was committed."""
    at = datetime.now(UTC) + timedelta(days=days)
    assert spans(head({0: 8}, at), spec({0: 6}, head=0)) == {0: (8, 8)}
    with pytest.raises(TopicRecreatedError, match="partition 0 ends at offset 6, but offsets up to 8 are landed"):
        land.pending(head({0: 8}, at), spec({0: 6}, head=1))


LAST = LastRecord(offset=7, fingerprint="f" * 16)


@pytest.mark.parametrize(
    ("found", "what"),
    [
        (None, "has no record there any more"),
        (LastRecord(offset=7, fingerprint="0" * 16), "has another record there"),
        (LastRecord(offset=8, fingerprint="f" * 16), "has another record at offset 8"),
    ],
)
def test_another_record_before_the_first_new_one_stops(found: LastRecord | None, what: str) -> None:
    span = Span(partition=3, first=9, next=12, last=LAST)
    with pytest.raises(TopicRecreatedError, match=rf"partition 3 lost records .* {what}\. .*cdc-lake resnapshot shop"):
        land.require_unchanged(spec({3: 12}), span, found)


def test_the_same_record_or_one_that_is_not_known_goes_on() -> None:
    span = Span(partition=3, first=9, next=12, last=LAST)
    land.require_unchanged(spec({3: 12}), span, LAST)
    land.require_unchanged(spec({3: 12}), span.model_copy(update={"last": None}), LAST)


@given(st.integers(0, 9), st.integers(0, 12))
def test_a_batch_carries_the_last_record_on_and_reads_from_it_while_it_is_there(begin: int, end: int) -> None:
    before = manifest(1, {0: (0, 9)}).model_copy(update={"spans": (Span(partition=0, first=0, next=9, last=LAST),)})
    if end < 9:
        with pytest.raises(TopicRecreatedError):
            land.pending(before, spec({0: end}, {0: begin}))
        return
    run = spec({0: end}, {0: begin})
    [span] = land.pending(before, run)
    assert span.last == LAST
    assert land.read_from(run, span) == (7 if end > 9 and begin <= 7 else 9)
