"""Conversion between the two notations of an LSN."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from resources.postgres import lsn


@given(st.integers(0, (1 << 64) - 1))
def test_an_lsn_is_converted_to_text_and_back(position: int) -> None:
    assert lsn.to_int(lsn.to_text(position)) == position


def test_the_text_is_postgresqls_notation() -> None:
    assert lsn.to_int("16/B374D848") == 0x16B374D848
    assert lsn.to_text(0x1600000001) == "16/1"


@pytest.mark.parametrize("text", ["", "16", "16/", "/1", "16/B374D8480", "g/1", "1/1/1", " 1/1"])
def test_other_text_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r"Cannot parse .* as an LSN"):
        lsn.to_int(text)


@pytest.mark.parametrize("position", [-1, 1 << 64])
def test_numbers_out_of_range_are_rejected(position: int) -> None:
    with pytest.raises(ValueError, match=r"Cannot write .* as an LSN"):
        lsn.to_text(position)
