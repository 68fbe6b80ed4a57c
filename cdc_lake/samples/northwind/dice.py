"""Reproducible chance: the few draws that the generator needs, made from one stream of numbers.

Only `Random.random` is used: Python promises that it yields the same numbers in every version, and
promises nothing of the kind for choice, sample or shuffle.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")


class Dice:
    """Draws from a stream of numbers that the seed fixes."""

    def __init__(self, seed: int) -> None:
        self._next = random.Random(seed).random  # noqa: S311 - sample data, no secret

    def chance(self) -> float:
        """A number from 0 up to, not including, 1."""
        return self._next()

    def between(self, low: int, high: int) -> int:
        """A whole number from low to high, both included."""
        return low + int(self._next() * (high - low + 1))

    def pick(self, items: Sequence[T]) -> T:
        """One of the items."""
        return items[int(self._next() * len(items))]

    def weighted(self, items: Sequence[T], weights: Sequence[float]) -> T:
        """One of the items, each as likely as its weight."""
        at = self._next() * sum(weights)
        for item, weight in zip(items, weights, strict=True):
            at -= weight
            if at < 0:
                return item
        return items[-1]

    def shuffled(self, items: Sequence[T]) -> list[T]:
        """The items in another order."""
        return [item for _, item in sorted(((self._next(), n), item) for n, item in enumerate(items))]
