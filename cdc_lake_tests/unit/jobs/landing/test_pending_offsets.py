"""Which offsets a landing run reads, and when it fails."""

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
from cdc_lake.jobs.landing import pending_offsets
from cdc_lake.jobs.landing.land_spec import LandSpec
from cdc_lake_tests.unit.contract.objects.landed import PIPELINE, TOPIC, TOPIC_ID, manifest


def spec(ends: Mapping[int, int], begins: Mapping[int, int] | None = None, head_number: int = 1) -> LandSpec:
    """Return the spec of a run that read these offsets when manifest `head_number` was the newest."""
    return LandSpec(
        location=S3Location("bucket"),
        pipeline=PIPELINE,
        topic=TOPIC,
        topic_id=TOPIC_ID,
        begins=begins or dict.fromkeys(ends, 0),
        ends=ends,
        chain="",
        head=head_number,
        kafka={},
    )


def head_manifest(ends: Mapping[int, int], committed_at: datetime | None = None) -> Manifest:
    """Return the newest manifest of a chain with these next offsets."""
    return manifest(1, {partition: (0, end) for partition, end in ends.items()}, committed_at=committed_at)


def spans(before: Manifest | None, run_spec: LandSpec) -> dict[int, tuple[int, int]]:
    """Return pending() as pairs of offsets by partition."""
    return {span.partition: (span.first, span.next) for span in pending_offsets.pending(before, run_spec)}


def test_all_offsets_are_pending_at_first() -> None:
    assert spans(None, spec({0: 10, 1: 0})) == {0: (0, 10), 1: (0, 0)}


@given(st.dictionaries(st.integers(0, 5), st.tuples(st.integers(0, 99), st.integers(0, 99)), min_size=1))
def test_spans_continue_the_chain(landed_and_new: dict[int, tuple[int, int]]) -> None:
    before = head_manifest({p: first for p, (first, _) in landed_and_new.items()})
    found = spans(before, spec({p: first + new for p, (first, new) in landed_and_new.items()}))
    assert found == {p: (first, first + new) for p, (first, new) in landed_and_new.items()}


def test_an_added_partition_starts_at_0() -> None:
    assert spans(head_manifest({0: 5}), spec({0: 9, 1: 4})) == {0: (5, 9), 1: (0, 4)}


def test_offsets_that_expired_before_landing_are_reported() -> None:
    with pytest.raises(OffsetsExpiredError, match="offsets 5 to 7 of partition 1 expired before they were landed"):
        pending_offsets.pending(head_manifest({0: 5, 1: 5}), spec({0: 9, 1: 9}, begins={0: 5, 1: 8}))


def test_offsets_that_expired_after_landing_are_no_loss() -> None:
    assert spans(head_manifest({0: 5}), spec({0: 9}, begins={0: 5})) == {0: (5, 9)}
    assert spans(head_manifest({0: 9}), spec({0: 9}, begins={0: 9})) == {0: (9, 9)}


def test_expiry_before_the_first_landing_is_reported() -> None:
    with pytest.raises(OffsetsExpiredError, match="offsets 0 to 2 of partition 0 expired"):
        pending_offsets.pending(None, spec({0: 9}, begins={0: 3}))


def test_a_topic_with_another_id_is_rejected() -> None:
    with pytest.raises(TopicRecreatedError, match=r"was deleted and re-created .*cdc-lake resnapshot shop"):
        pending_offsets.pending(head_manifest({0: 5}), replace(spec({0: 9}), topic_id="another"))


def test_a_topic_that_lost_its_end_is_rejected() -> None:
    with pytest.raises(TopicRecreatedError, match="partition 0 ends at offset 3, but offsets up to 4 are landed"):
        pending_offsets.pending(head_manifest({0: 5}), spec({0: 3}))


def test_a_topic_that_lost_a_partition_is_rejected() -> None:
    with pytest.raises(TopicRecreatedError, match="partition 1 ends at offset 0"):
        pending_offsets.pending(head_manifest({0: 5, 1: 5}), spec({0: 9}))


def test_records_landed_by_another_run_meanwhile_are_no_loss() -> None:
    """The end offsets were read before the other run committed."""
    found = spans(head_manifest({0: 8, 1: 5, 2: 3}), spec({0: 6, 1: 7}, head_number=0))
    assert found == {0: (8, 8), 1: (5, 7), 2: (3, 3)}


@pytest.mark.parametrize("days", [-1, 1])
def test_clocks_of_landing_runs_may_differ(days: int) -> None:
    """The check uses the manifest number, not committed_at."""
    committed_at = datetime.now(UTC) + timedelta(days=days)
    assert spans(head_manifest({0: 8}, committed_at), spec({0: 6}, head_number=0)) == {0: (8, 8)}
    with pytest.raises(TopicRecreatedError, match="partition 0 ends at offset 6, but offsets up to 7 are landed"):
        pending_offsets.pending(head_manifest({0: 8}, committed_at), spec({0: 6}, head_number=1))


LAST = LastRecord(offset=7, fingerprint="f" * 16)


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (None, "has no record at that offset any more"),
        (LastRecord(offset=7, fingerprint="0" * 16), "has another record at that offset"),
        (LastRecord(offset=8, fingerprint="f" * 16), "has another record at offset 8"),
    ],
)
def test_a_changed_last_record_is_rejected(found: LastRecord | None, problem: str) -> None:
    span = Span(partition=3, first=9, next=12, last=LAST)
    with pytest.raises(
        TopicRecreatedError, match=rf"partition 3 lost records .* {problem}\. .*cdc-lake resnapshot shop"
    ):
        pending_offsets.require_unchanged(spec({3: 12}), span, found)


def test_an_unchanged_or_unknown_last_record_is_accepted() -> None:
    span = Span(partition=3, first=9, next=12, last=LAST)
    pending_offsets.require_unchanged(spec({3: 12}), span, LAST)
    pending_offsets.require_unchanged(spec({3: 12}), span.model_copy(update={"last": None}), LAST)


@given(st.integers(0, 9), st.integers(0, 12))
def test_a_batch_reads_from_the_last_record_if_it_has_not_expired(begin: int, end: int) -> None:
    before = manifest(1, {0: (0, 9)}).model_copy(update={"spans": (Span(partition=0, first=0, next=9, last=LAST),)})
    if end < 9:
        with pytest.raises(TopicRecreatedError):
            pending_offsets.pending(before, spec({0: end}, {0: begin}))
        return
    run = spec({0: end}, {0: begin})
    [span] = pending_offsets.pending(before, run)
    assert span.last == LAST
    assert pending_offsets.start_offset(run, span) == (7 if end > 9 and begin <= 7 else 9)
