"""One measured value, and the names by which goals and charts refer to it."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict

OURS = "cdc-lake"


class Figure(BaseModel):
    """A value: what was measured, in which unit, and of which system; `size` is the position in a series."""

    model_config = ConfigDict(frozen=True)

    what: str
    unit: str
    value: float
    system: str = OURS
    size: float | None = None


def value_of(figures: Iterable[Figure], what: str, unit: str, system: str) -> float | None:
    """Return the only figure of these names that is not part of a series, None if there is none."""
    found = [f.value for f in figures if (f.what, f.unit, f.system, f.size) == (what, unit, system, None)]
    if len(found) > 1:
        raise ValueError(f"Cannot judge '{what}' of {system} in {unit}: it was measured {len(found)} times.")
    return found[0] if found else None
