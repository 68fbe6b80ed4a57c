"""The order and times of the kills, drawn from a seed, so that a run can be repeated up to timing."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cdc_lake.pipeline.spec.pipeline import Mode

COMPONENTS = ("postgres", "kafka", "connect", "s3", "trino", "aws")
RUN, SERVER, SPARK, DAEMON = "run", "server", "spark", "daemon"
"""The process of a Dagster run, the Spark server of the runs, the JVM of its session, Dagster's daemon."""
_TARGETS = (*COMPONENTS, RUN, SERVER, RUN, SPARK, DAEMON)
_AT_ONCE = (1, 1, 1, 1, 1, 1, 2, 2, 2, 3)
_INTO_RUN = 12.0


@dataclass(frozen=True)
class Kill:
    """Targets that are killed together, `after` seconds after the previous kill.

    If a run has to start first, it is killed `into` seconds after its start.
    """

    after: float
    targets: tuple[str, ...]
    into: float


def targets(mode: Mode) -> tuple[str, ...]:
    """Return the targets of one round: runs twice, since they do the pipeline's own work.

    In continuous mode the run has a session of its own, and no other run needs the Spark server.
    """
    return _TARGETS if mode == "triggered" else tuple(each for each in _TARGETS if each != SERVER)


def plan(seed: int, every: float, mode: Mode) -> Iterator[Kill]:
    """Yield kills without end, one every `every` seconds on average; each round has every target."""
    dice = random.Random(seed)
    rounds = _rounds(dice, targets(mode))
    while True:
        together = tuple(dict.fromkeys(next(rounds) for _ in range(dice.choice(_AT_ONCE))))
        after = len(together) * every * dice.uniform(0.5, 1.5)
        yield Kill(after, together, dice.uniform(0, _INTO_RUN))


def _rounds(dice: random.Random, round_targets: Sequence[str]) -> Iterator[str]:
    while True:
        cards = list(round_targets)
        dice.shuffle(cards)
        yield from cards
