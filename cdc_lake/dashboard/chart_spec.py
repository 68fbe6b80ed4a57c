"""The chart kinds a visual may have, as declared.

Here: the fields of `chart`. Not here: the drawing (bar.py, scatter.py).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from pydantic import Field

from cdc_lake.dashboard.fields import Name, Strict, Template


class Highlight(Strict):
    """Which rows stand out: the `top` rows by one column, among those where another is true."""

    top: int = Field(ge=1, le=30, description="how many rows")
    by: Name = Field(description="the numeric column that ranks them")
    where: Name | None = Field(None, description="a yes_no column; without it all rows are considered")


class Running(Strict):
    """A running share printed beside the bars, and the bar up to which the message counts."""

    column: Name = Field(description="the column of the running share")
    mark: int = Field(ge=1, description="the number of bars that the mark encloses")
    note: Template = Field(description="the sentence at the mark; figures in braces")


class BarChart(Strict):
    """Horizontal bars in the order of the query's rows."""

    kind: Literal["bar"] = Field(description="bar or scatter")
    x: Name = Field(description="the numeric column that is a bar's length")
    y: Name = Field(description="the column that names a bar")
    tooltip: tuple[Name, ...] = Field((), description="columns shown when a bar is pointed at")
    highlight: Highlight | None = Field(None, description="the bars that stand out")
    running: Running | None = Field(None, description="a running share beside the bars")
    show: int = Field(20, ge=1, description="bars shown at first; the rest on demand")

    def references(self) -> Iterator[tuple[str, str, bool]]:
        """Each column the chart names: its place, its name, and whether it has to be numeric."""
        yield "x", self.x, True
        yield "y", self.y, False
        if self.running:
            yield "running.column", self.running.column, True
        yield from _others(self.tooltip, highlight=self.highlight)


class ScatterChart(Strict):
    """One dot a row, its area in proportion to `size`; highlighted dots are labelled."""

    kind: Literal["scatter"] = Field(description="bar or scatter")
    x: Name = Field(description="the numeric column across")
    y: Name = Field(description="the numeric column upwards")
    size: Name = Field(description="the numeric column that is a dot's area")
    label: Name = Field(description="the column that names a dot")
    tooltip: tuple[Name, ...] = Field((), description="columns shown when a dot is pointed at")
    highlight: Highlight | None = Field(None, description="the dots that stand out and are labelled")
    named: Highlight | None = Field(None, description="further dots that are labelled, but don't stand out")

    def references(self) -> Iterator[tuple[str, str, bool]]:
        """Each column the chart names: its place, its name, and whether it has to be numeric."""
        for place in ("x", "y", "size"):
            yield place, getattr(self, place), True
        yield "label", self.label, False
        yield from _others(self.tooltip, highlight=self.highlight, named=self.named)


def _others(tooltip: tuple[str, ...], **rules: Highlight | None) -> Iterator[tuple[str, str, bool]]:
    for name in tooltip:
        yield "tooltip", name, False
    for place, rule in rules.items():
        if rule:
            yield f"{place}.by", rule.by, True
        if rule and rule.where:
            yield f"{place}.where", rule.where, False
