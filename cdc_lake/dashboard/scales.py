"""Round numbers for axes and legends.

Here: arithmetic only; the label placement needs to know the axis before the browser does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_ENDS = (1.0, 1.2, 1.4, 1.6, 1.8, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 12.0)
_STEPS = (0.1, 0.2, 0.5, 1.0, 2.0, 3.0, 5.0)


def nice_domain(values: Sequence[float]) -> tuple[float, float]:
    """Round axis ends around `values` that include 0 and leave some room; (0, 1) without values."""
    low, high = min(values, default=0.0), max(values, default=0.0)
    bottom, top = -_nice_end(-low) if low < 0 else 0.0, _nice_end(high) if high > 0 else 0.0
    return (bottom, top) if top > bottom else (0.0, 1.0)


def legend_values(largest: float) -> list[float]:
    """Up to three round values, the largest not above `largest`, that tell sizes apart."""
    unit = 10.0 ** math.floor(math.log10(largest))
    steps = [unit * step for step in _STEPS if unit * step <= largest]
    middle = [step for step in steps if step <= steps[-1] / 2.5][-1:]
    small = [step for step in steps if middle and step <= middle[0] / 4][-1:]
    return [*small, *middle, steps[-1]]


def _nice_end(largest: float) -> float:
    unit = 10.0 ** math.floor(math.log10(largest))
    return next(unit * step for step in _ENDS if unit * step >= largest * 1.04)
