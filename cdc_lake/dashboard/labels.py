"""Where to put labels beside dots so that they cover neither each other nor other dots.

Here: geometry only. A page has no one width, so a place is judged at several widths of the plot together.
Not here: the chart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

CHARACTER, HEIGHT = 8.0, 15.0
"""A label's measures in pixels: width of a character, height of the line."""
_OUTSIDE, _ON_LABEL, _ON_NAMED_DOT, _ON_DOT = 500.0, 1000.0, 60.0, 8.0


@dataclass(frozen=True)
class Dot:
    """A dot: place as shares of the plot's width and height (from the top), radius in pixels."""

    x: float
    y: float
    radius: float


@dataclass(frozen=True)
class Label:
    """A text for one of the dots, by its number."""

    dot: int
    text: str


@dataclass(frozen=True)
class Place:
    """A label's anchor relative to its dot's centre, in pixels; `align` as in Vega: left, center, right."""

    align: str
    dx: float
    dy: float


@dataclass(frozen=True)
class _Box:
    left: float
    top: float
    right: float
    bottom: float

    def meets(self, other: _Box) -> bool:
        across = self.left < other.right and other.left < self.right
        return across and self.top < other.bottom and other.top < self.bottom


@dataclass(frozen=True)
class _Plot:
    """The dots at one size of the plot."""

    dots: Sequence[Dot]
    named: frozenset[int]
    """The dots that have labels."""
    width: float
    height: float

    def dot_box(self, dot: Dot) -> _Box:
        x, y, radius = dot.x * self.width, dot.y * self.height, dot.radius
        return _Box(x - radius, y - radius, x + radius, y + radius)

    def label_box(self, label: Label, place: Place) -> _Box:
        dot, long = self.dots[label.dot], len(label.text) * CHARACTER
        anchor, middle = dot.x * self.width + place.dx, dot.y * self.height + place.dy
        left = anchor - {"left": 0.0, "center": long / 2, "right": long}[place.align]
        return _Box(left, middle - HEIGHT / 2, left + long, middle + HEIGHT / 2)

    def cost(self, label: Label, place: Place, taken: Sequence[tuple[Label, Place]]) -> float:
        box = self.label_box(label, place)
        outside = box.left < 0 or box.top < 0 or box.right > self.width or box.bottom > self.height
        on_labels = sum(box.meets(self.label_box(other, where)) for other, where in taken)
        on_dots = sum(
            _ON_NAMED_DOT if number in self.named else _ON_DOT
            for number, dot in enumerate(self.dots)
            if box.meets(self.dot_box(dot))
        )
        return _OUTSIDE * outside + _ON_LABEL * on_labels + on_dots


def place_labels(dots: Sequence[Dot], labels: Sequence[Label], widths: Sequence[float], height: float) -> list[Place]:
    """A place for each label, the first ones choosing first: the cheapest over all `widths` (pixels).

    Covering another label or leaving the plot costs most, then dots in the way, then an unusual side.
    """
    named = frozenset(label.dot for label in labels)
    plots = [_Plot(dots, named, width, height) for width in widths]
    taken: list[tuple[Label, Place]] = []
    for label in labels:
        candidates = _candidates(dots[label.dot].radius)
        costs = [
            preference + sum(plot.cost(label, place, taken) for plot in plots)
            for preference, place in enumerate(candidates)
        ]
        taken.append((label, candidates[costs.index(min(costs))]))
    return [place for _, place in taken]


def _candidates(radius: float) -> tuple[Place, ...]:
    beside, above = radius + 4, radius + 2 + HEIGHT / 2
    slant_x, slant_y = radius * math.sqrt(0.5) + 3, radius * math.sqrt(0.5) + HEIGHT / 2
    return (
        Place("left", beside, 0),
        Place("right", -beside, 0),
        Place("center", 0, -above),
        Place("center", 0, above),
        Place("left", slant_x, -slant_y),
        Place("left", slant_x, slant_y),
        Place("right", -slant_x, -slant_y),
        Place("right", -slant_x, slant_y),
    )
