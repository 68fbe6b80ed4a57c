"""Validation of one manifest."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from cdc_lake.contract.objects.manifest import LandedObject, LastRecord, Manifest, Span
from cdc_lake.jobs.landing.raw_writer import consecutive_runs
from cdc_lake_tests.unit.contract.objects.landed import manifest


def item(first: int, last: int, partition: int = 0, **changes: object) -> LandedObject:
    """Return an object with every offset from first to last."""
    count = last - first + 1
    entry = {
        "key": f"object of {partition} at {first}",
        "partition": partition,
        "first": first,
        "last": last,
        "records": count,
        "bytes": 10 * count,
        "sha256": "0" * 64,
        "etag": "e",
        "runs": ((first, count),),
    }
    return LandedObject.model_validate({**entry, **changes})


def test_encoding_and_decoding_returns_the_same_manifest() -> None:
    candidate = manifest(3, {0: (5, 10), 1: (0, 0)}, objects=(item(5, 6), item(7, 9)))
    assert Manifest.decode(candidate.encode()) == candidate
    assert (candidate.records, candidate.size, candidate.next_offsets()) == (5, 50, {0: 10, 1: 0})


@given(st.sets(st.integers(0, 200), min_size=1))
def test_runs_contain_every_offset(offsets: set[int]) -> None:
    ascending = sorted(offsets)
    runs = tuple(consecutive_runs(ascending))
    candidate = item(ascending[0], ascending[-1], records=len(ascending), runs=runs)
    assert list(candidate.offsets()) == ascending
    assert all(before + count < after for (before, count), (after, _) in pairwise(runs))


def test_runs_with_another_number_of_records_are_rejected() -> None:
    with pytest.raises(ValidationError, match="its offset ranges contain"):
        item(0, 9, records=9)


@pytest.mark.parametrize("runs", [((0, 5), (4, 5)), ((1, 10),), ((0, 9), (11, 1)), ((5, 5), (0, 5))])
def test_runs_outside_of_the_objects_offsets_are_rejected(runs: tuple[tuple[int, int], ...]) -> None:
    with pytest.raises(ValidationError, match="its offset ranges"):
        item(0, 9, runs=runs)


@pytest.mark.parametrize(("first", "end"), [(-1, 3), (4, 3)])
def test_a_negative_or_reversed_span_is_rejected(first: int, end: int) -> None:
    with pytest.raises(ValidationError, match="not a valid range"):
        Span(partition=0, first=first, next=end)


@pytest.mark.parametrize("candidate", [item(4, 7), item(8, 10), item(5, 6, partition=1)])
def test_an_object_outside_of_the_spans_is_rejected(candidate: LandedObject) -> None:
    with pytest.raises(ValidationError, match="is outside"):
        manifest(1, {0: (5, 10)}, objects=(candidate,))


def test_overlapping_objects_are_rejected() -> None:
    with pytest.raises(ValidationError, match="overlaps"):
        manifest(1, {0: (0, 10)}, objects=(item(4, 9), item(0, 4)))


OLD = """{
 "version": 1, "number": 2, "attempt": "a", "pipeline": "shop", "topic": "t", "topic_id": "i", "epoch": 0,
 "opens": null, "spans": [{"partition": 0, "first": 5, "next": 9}], "objects": [], "dead_letters": 0,
 "watermark": null, "committed_at": "2024-01-01T00:00:00Z"
}"""


@pytest.mark.parametrize("version", [b"1", b"2"])
def test_manifests_of_earlier_versions_are_read(version: bytes) -> None:
    found = Manifest.decode(OLD.encode().replace(b'"version": 1', b'"version": ' + version))
    assert (found.version, found.chain, found.last_records(), found.next_offsets()) == (int(version), "", {}, {0: 9})


@pytest.mark.parametrize(
    ("old", "new"), [(b'"number"', b'"chain": "x", "number"'), (b'"next": 9', b'"next": 9, "last": %b')]
)
def test_fields_of_version_3_are_rejected_in_earlier_versions(old: bytes, new: bytes) -> None:
    new = new.replace(b"%b", b'{"offset": 8, "fingerprint": "ff"}')
    changed = OLD.encode().replace(old, new)
    with pytest.raises(ValidationError, match="manifests of version 1 cannot contain a chain id"):
        Manifest.decode(changed)
    assert Manifest.decode(changed.replace(b'"version": 1', b'"version": 3')).version == 3


@pytest.mark.parametrize("offset", [-1, 9])
def test_a_last_record_outside_of_the_span_is_rejected(offset: int) -> None:
    with pytest.raises(ValidationError, match="its last record is not before offset 9"):
        Span(partition=0, first=5, next=9, last=LastRecord(offset=offset, fingerprint="ff"))


def test_an_unknown_field_is_rejected() -> None:
    with pytest.raises(ValidationError, match="Extra inputs"):
        Manifest.decode(manifest(1, {0: (0, 1)}).encode().replace(b'"version"', b'"colour": 1, "version"'))
