"""Measures how long objects wait until a commit of a table contains them."""

from __future__ import annotations

import bisect
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate

from benchmarks.measures.repeated_work import repeated

POLL_SECONDS = 0.1


class CommitTimes:
    """The new commits of a table, each with its position and the time at which it was first listed.

    `instants` lists the table's commits. `position` returns how far a commit has applied the objects; it is called as
    soon as the commit is listed, because Hudi archives old commits. Commits that exist at the start are left out.
    """

    def __init__(self, instants: Callable[[], Sequence[str]], position: Callable[[str], int]) -> None:
        self._instants, self._position = instants, position
        self._known = set(instants())
        self.found: list[tuple[int, float]] = []
        """Position, and seconds since 1970."""

    @property
    def reached(self) -> int:
        """The position of the newest commit; 0 without a commit."""
        return self.found[-1][0] if self.found else 0

    def poll(self) -> None:
        """List the table's commits."""
        for instant in self._instants():
            if instant not in self._known:
                at = time.time()
                self.found.append((self._position(instant), at))
                self._known.add(instant)

    @contextmanager
    def polled(self) -> Iterator[None]:
        """Poll ten times a second during the block, and once after it."""
        with repeated(self.poll, POLL_SECONDS):
            yield
        self.poll()


def latencies(written: Sequence[tuple[int, float]], commits: Sequence[tuple[int, float]]) -> list[float]:
    """Return for each object the seconds until the first commit that contains it.

    `written` has the position and the time of each object, `commits` the position up to which each commit has applied
    them and its time, ordered by time. An object that no commit contains raises ValueError.
    """
    reached = list(accumulate((position for position, _ in commits), max))
    found = []
    for position, at in written:
        number = bisect.bisect_left(reached, position)
        if number == len(commits):
            raise ValueError(f"no commit contains the object at position {position}")
        found.append(commits[number][1] - at)
    return found
