"""The order of changes: the text's order is the tuple's order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cdc_lake.contract.table.event_order import Position, Watermark

POSITIONS = st.builds(Position, st.integers(0, 999_999), st.booleans(), st.integers(0, 2**63 - 1))


@given(POSITIONS, POSITIONS)
def test_text_sorts_as_positions_do(one: Position, other: Position) -> None:
    assert (one.encode() < other.encode()) == (one < other)
    assert (one.encode() == other.encode()) == (one == other)


@given(POSITIONS)
def test_text_reads_back(position: Position) -> None:
    assert Position.decode(position.encode()) == position
    assert len(position.encode()) == 29


def test_a_snapshot_is_older_than_anything_streamed_in_its_epoch() -> None:
    snapshot, streamed = Position(0, False, 900), Position(0, True, 100)
    assert snapshot < streamed
    assert streamed < Position(1, False, 1)


def test_watermarks_are_told_apart() -> None:
    assert Watermark(1, 2) == Watermark(1, 2)
    assert Watermark(1, 2) != Watermark(1, 3)
