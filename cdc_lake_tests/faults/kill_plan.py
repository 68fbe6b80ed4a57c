"""What is killed when: drawn from a seed, so that a run can be repeated as far as clocks allow."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

COMPONENTS = ("postgres", "kafka", "connect", "s3", "trino", "aws")
RUN, SPARK, DAEMON = "run", "spark", "daemon"
"""The process of a Dagster run, the JVM of its Spark session, Dagster's daemon."""
TARGETS = (*COMPONENTS, RUN, SPARK, RUN, SPARK, DAEMON)
"""What a deck holds: runs do the pipeline's own work, so they are hit at more places."""
_AT_ONCE = (1, 1, 1, 1, 1, 1, 2, 2, 2, 3)
_INTO_RUN = 12.0


@dataclass(frozen=True)
class Blow:
    """So many seconds after the blow before, these are killed, one right after the other.

    A run that has to begin first is killed so many seconds `into` it.
    """

    after: float
    targets: tuple[str, ...]
    into: float


def plan(seed: int, every: float) -> Iterator[Blow]:
    """Blows without end, a kill every so many seconds on average; each target gets its share."""
    dice = random.Random(seed)
    deck = _deck(dice)
    while True:
        targets = tuple(dict.fromkeys(next(deck) for _ in range(dice.choice(_AT_ONCE))))
        after = len(targets) * every * dice.uniform(0.5, 1.5)
        yield Blow(after, targets, dice.uniform(0, _INTO_RUN))


def _deck(dice: random.Random) -> Iterator[str]:
    while True:
        cards = list(TARGETS)
        dice.shuffle(cards)
        yield from cards
