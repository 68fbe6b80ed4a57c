"""Reproducible random draws for the generated samples.

Uses only `Random.random`, which Python guarantees to return the same numbers in every version; choice, sample and
shuffle have no such guarantee.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Random draws that are determined by a seed."""

    def __init__(self, seed: int) -> None:
        self._next = random.Random(seed).random  # noqa: S311 - sample data, no secret

    def chance(self) -> float:
        """Return a number in [0, 1)."""
        return self._next()

    def between(self, low: int, high: int) -> int:
        """Return an integer in [low, high]."""
        return low + int(self._next() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        """Return one of the items."""
        return items[int(self._next() * len(items))]

    def weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """Return one of the items, with probabilities proportional to the weights."""
        at = self._next() * sum(weights)
        for item, weight in zip(items, weights, strict=True):
            at -= weight
            if at < 0:
                return item
        return items[-1]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """Return the items in random order."""
        return [item for _, item in sorted(((self._next(), n), item) for n, item in enumerate(items))]
