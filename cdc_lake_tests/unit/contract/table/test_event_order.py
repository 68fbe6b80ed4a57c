"""Encoded positions sort like positions."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from cdc_lake.contract.table.event_order import INCREMENTAL_POSITION, NO_LSN, Position, Watermark

POSITIONS = st.builds(Position, st.integers(0, 999_999), st.booleans(), st.integers(0, 2**63 - 1))


@given(POSITIONS, POSITIONS)
def test_encoded_positions_sort_like_positions(one: Position, other: Position) -> None:
    assert (one.encode() < other.encode()) == (one < other)
    assert (one.encode() == other.encode()) == (one == other)


@given(POSITIONS)
def test_an_encoded_position_is_decoded_back(position: Position) -> None:
    assert Position.decode(position.encode()) == position
    assert len(position.encode()) == 29


def test_a_snapshot_record_is_older_than_streamed_records_of_its_epoch() -> None:
    snapshot, streamed = Position(0, False, 900), Position(0, True, 100)
    assert snapshot < streamed
    assert streamed < Position(1, False, 1)


def test_a_row_of_an_incremental_snapshot_is_newer_than_the_first_snapshot_and_older_than_any_change() -> None:
    read = Position(1, False, NO_LSN)
    assert Position(1, False, 2**63 - 1) < read < Position(1, True, 0)
    assert Position(0, True, 2**63 - 1) < read
    assert read.incremental
    assert not Position(1, True, NO_LSN).incremental
    assert read.encode() == f"000001{INCREMENTAL_POSITION}"


def test_watermarks_with_different_lsn_are_unequal() -> None:
    assert Watermark(1, 2) == Watermark(1, 2)
    assert Watermark(1, 2) != Watermark(1, 3)
