"""The order in which processes are given the files of a suite: long ones first, so that all end at the same time."""

from __future__ import annotations

from collections.abc import Sequence

import pytest


def longest_first(items: list[pytest.Item], names: Sequence[str]) -> None:
    """Put these files or folders first, in this order; what is not named keeps its place behind them."""
    ranks = {name: rank for rank, name in enumerate(names)}

    def rank(item: pytest.Item) -> int:
        last = len(ranks)
        return min(ranks.get(item.path.stem, last), ranks.get(item.path.parent.name, last))

    items.sort(key=rank)
