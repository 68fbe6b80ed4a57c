"""Sentences that carry figures: `{name}` in a template stands for a figure's formatted value.

Here: the template's grammar and filling it in. Not here: where the figures come from (render.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from string import Formatter


@dataclass(frozen=True)
class Figure:
    """One number, or text, that the page states."""

    value: object
    """As the query gave it."""
    text: str
    """As the page shows it."""


@dataclass(frozen=True)
class Segment:
    """A piece of a filled-in sentence."""

    text: str
    is_figure: bool


def placeholders(template: str) -> tuple[str, ...]:
    """The names that `template` refers to, in order.

    Raises ValueError for anything but plain `{name}`: formats belong to the figure's declaration.
    """
    names = []
    for _, name, format_spec, conversion in Formatter().parse(template):
        if name is None:
            continue
        if not name.isidentifier() or format_spec or conversion:
            raise ValueError(f"'{{{name}}}' is not understood; allowed: a figure's name in braces, as in {{revenue}}")
        names.append(name)
    return tuple(names)


def fill(template: str, figures: Mapping[str, Figure]) -> tuple[Segment, ...]:
    """`template` with its figures, in segments, so that a page can set the figures off from the words."""
    segments = []
    for literal, name, _, _ in Formatter().parse(template):
        if literal:
            segments.append(Segment(literal, is_figure=False))
        if name is not None:
            segments.append(Segment(figures[name].text, is_figure=True))
    return tuple(segments)


def plain(segments: tuple[Segment, ...]) -> str:
    """The sentence as text."""
    return "".join(segment.text for segment in segments)
