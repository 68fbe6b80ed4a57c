"""What verify reads: ranges that cover a table once, and the manifests that can matter."""

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
from cdc_lake.jobs.verify.compared_rows import page_ranges
from cdc_lake_tests.memory_store import MemoryLocation, MemoryStore


@given(st.integers(0, 50_000_000))
def test_ranges_cover_every_page_once_and_what_comes_after(pages: int) -> None:
    found = page_ranges(pages)
    assert found[0][0] == 0
    assert found[-1][1] is None
    for (_, end), (first, _) in pairwise(found):
        assert end == first
    assert 1 <= len(found) <= 512


def test_a_table_that_is_read_in_one() -> None:
    assert page_ranges(None) == []


@dataclass(frozen=True)
class Asked:
    """What manifests_after() looks at of a spec."""

    location: MemoryLocation
    lake: LakeState | None
    pipeline: str = "shop"
    topic: str = "shop.orders"


@pytest.fixture
def bucket() -> MemoryStore:
    """A chain of nine manifests."""
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
def test_the_manifests_between_two_states(
    bucket: MemoryStore, lake: int | None, base: int | None, expected: list[int]
) -> None:
    asked: Any = Asked(MemoryLocation(bucket), None if lake is None else LakeState("2", lake))
    found = manifests_after(asked, None if base is None else LakeState("1", base))
    assert [manifest.number for manifest in found] == expected
