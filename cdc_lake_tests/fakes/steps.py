"""What fakes remove, in order, and a place where they can be cut off."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self


class CutOff(Exception):  # noqa: N818 - it says what happens to whoever meets it
    """The process died here."""


@dataclass
class Steps:
    """What fakes removed, in order. With `cut_at`, the step of that number doesn't happen: CutOff is raised."""

    done: list[str] = field(default_factory=list)
    cut_at: int | None = None

    def take(self, what: str) -> None:
        """A removal is about to happen."""
        if self.cut_at == len(self.done):
            raise CutOff(what)
        self.done.append(what)


class Noting:
    """A fake that notes what it removes."""

    _steps: Steps

    def noting(self, steps: Steps) -> Self:
        """Itself, with removals noted there."""
        self._steps = steps
        return self
