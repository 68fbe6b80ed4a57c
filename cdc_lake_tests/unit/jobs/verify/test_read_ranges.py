"""Ranges that verify reads: page ranges that cover a table once, and the manifests after a state."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lake.contract.objects.chain import Chain
from cdc_lake.contract.objects.manifest import Manifest, Span
from cdc_lake.jobs.verify import LakeState
from cdc_lake.jobs.verify.changed_keys import manifests_after
from cdc_lake.jobs.verify.source_rows import page_ranges
from cdc_lake_tests.helpers.memory_store import MemoryLocation, MemoryStore


@given(st.integers(0, 50_000_000))
def test_ranges_cover_every_page_once_and_later_pages(pages: int) -> None:
    found = page_ranges(pages)
    assert found[0][0] == 0
    assert found[-1][1] is None
    for (_, end), (first, _) in pairwise(found):
        assert end == first
    assert 1 <= len(found) <= 512


def test_a_table_of_unknown_size_has_no_ranges() -> None:
    assert page_ranges(None) == []


@dataclass(frozen=True)
class FakeSpec:
    """The part of a spec that manifests_after() reads."""

    location: MemoryLocation
    lake: LakeState | None
    pipeline: str = "shop"
    topic: str = "shop.orders"


@pytest.fixture
def bucket() -> MemoryStore:
    """A bucket with a chain of nine manifests."""
    store = MemoryStore()
    chain = Chain(store, "shop", "shop.orders")
    for number in range(1, 10):
        chain.append(
            Manifest(
                number=number,
                attempt=str(number),
                pipeline="shop",
                topic="shop.orders",
                topic_id="A",
                spans=(
                    Span(partition=0, first=number, next=number + 1)
                    if number > 1
                    else Span(partition=0, first=0, next=2),
                ),
                objects=(),
                committed_at=datetime.now(UTC),
            )
        )
    return store


@pytest.mark.parametrize(
    ("lake", "base", "expected"),
    [
        (7, 5, [6, 7]),
        (7, 7, []),
        (7, None, [1, 2, 3, 4, 5, 6, 7]),
        (None, None, []),
    ],
)
def test_manifests_between_two_states_are_returned(
    bucket: MemoryStore, lake: int | None, base: int | None, expected: list[int]
) -> None:
    spec: Any = FakeSpec(MemoryLocation(bucket), None if lake is None else LakeState("2", lake))
    found = manifests_after(spec, None if base is None else LakeState("1", base))
    assert [manifest.number for manifest in found] == expected
