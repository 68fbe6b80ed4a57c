"""Parsing of PostgreSQL's snapshot notation."""

from __future__ import annotations

import pytest

from resources.postgres.exported_snapshot import Snapshot


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("10:20:10,14,15", Snapshot(10, 20, frozenset({10, 14, 15}))),
        ("748:748:", Snapshot(748, 748, frozenset())),
        ("4294967300:4294967310:4294967305", Snapshot(4294967300, 4294967310, frozenset({4294967305}))),
    ],
)
def test_valid_snapshots_are_parsed(text: str, found: Snapshot) -> None:
    assert Snapshot.parse(text) == found


@pytest.mark.parametrize("text", ["", "10:20", "10:20:x", "20:10:", "10:20:25", "10:20:9", "10:20:12:3"])
def test_other_text_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match="is not a snapshot"):
        Snapshot.parse(text)
