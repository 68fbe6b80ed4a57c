"""Counts with their nouns."""

from __future__ import annotations

import pytest

from cdc_lake.contract.plurals import counted


@pytest.mark.parametrize(("count", "text"), [(0, "0 objects"), (1, "1 object"), (2, "2 objects")])
def test_the_noun_agrees_with_the_count(count: int, text: str) -> None:
    assert counted(count, "object") == text
