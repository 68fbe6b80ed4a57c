"""A record of what fakes remove, in order, and a step at which they stop."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self


class CutOff(Exception):  # noqa: N818 - a simulated event, not an error
    """Simulates the death of the process."""


@dataclass
class Steps:
    """What fakes removed, in order. The step with number `cut_at` does not happen and raises CutOff."""

    done: list[str] = field(default_factory=list)
    cut_at: int | None = None

    def take(self, what: str) -> None:
        """Record a removal that is about to happen. Raises CutOff at step `cut_at`."""
        if self.cut_at == len(self.done):
            raise CutOff(what)
        self.done.append(what)


class Noting:
    """A fake that records what it removes."""

    _steps: Steps

    def noting(self, steps: Steps) -> Self:
        """Record removals in `steps`. Return self."""
        self._steps = steps
        return self
