"""Dots by two numbers, their area a third; the highlighted ones are labelled.

Here: the drawing of `kind: scatter`. Not here: where labels go (labels.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from cdc_lake.dashboard.chart_spec import ScatterChart
from cdc_lake.dashboard.data import Record
from cdc_lake.dashboard.formats import axis_label
from cdc_lake.dashboard.labels import Dot, Label, place_labels
from cdc_lake.dashboard.marks import Chart, draw_data, highlighted, inline, text_field, tier_color, tooltips
from cdc_lake.dashboard.scales import legend_values, nice_domain
from cdc_lake.dashboard.spec import Visual

HEIGHT = 470
LARGEST = 900
"""Vega's size of the largest dot: the square of its diameter in pixels."""
_PLOT_WIDTHS = (225.0, 300.0, 560.0, 800.0, 1400.0)
"""What is left for the plot on pages of 360 to 1920 pixels."""


@dataclass(frozen=True)
class _Axes:
    """The ranges of the three numbers."""

    x: tuple[float, float]
    y: tuple[float, float]
    largest: float

    def dot(self, x: float, y: float, size: float) -> Dot:
        """A row's dot; its radius follows from Vega's square root scale."""
        across = (x - self.x[0]) / (self.x[1] - self.x[0])
        down = (self.y[1] - y) / (self.y[1] - self.y[0])
        return Dot(across, down, (LARGEST * max(size, 0) / self.largest) ** 0.5 / 2)


def draw(visual: Visual, spec: ScatterChart, records: Sequence[Record], currency: str) -> Chart:
    """The dots of `records`; rows without x, y or size are not drawn, and `shown` of the result says so."""
    rows = [
        row for row in draw_data(visual, records, currency) if None not in (row[spec.x], row[spec.y], row[spec.size])
    ]
    rows.sort(key=lambda row: -row[spec.size])  # the order of drawing: large dots behind small ones
    axes = _Axes(
        nice_domain([row[spec.x] for row in rows]),
        nice_domain([row[spec.y] for row in rows]),
        max((row[spec.size] for row in rows), default=0) or 1,
    )
    _add_labels(rows, spec, records, axes)

    base = alt.Chart(inline(rows)).encode(
        x=alt.X(f"{spec.x}:Q", scale=_scale(axes.x), axis=_across(visual, spec, currency)),
        y=alt.Y(f"{spec.y}:Q", scale=_scale(axes.y), axis=_upwards(visual, spec, currency)),
    )
    dots = base.mark_circle(style="dot", opacity=0.88).encode(
        size=_size(visual, spec, axes.largest), color=tier_color(), tooltip=tooltips(visual)
    )
    layers = [
        dots.transform_filter("datum._tier != 'highlight'"),
        # Halos keep labels readable over other dots; they must not cut into those that stand out.
        _texts(base, "isValid(datum._label)", "halo"),
        dots.transform_filter("datum._tier == 'highlight'"),
        _texts(base, "isValid(datum._label) && datum._tier == 'highlight'", "label"),
        _texts(base, "isValid(datum._label) && datum._tier != 'highlight'", "quiet"),
    ]
    chart = alt.layer(*layers).properties(height=HEIGHT)
    return Chart(chart, beside=60, rows=len(records), shown=len(rows))


def _texts(base: alt.Chart, rows: str, style: str) -> Any:  # noqa: ANN401  (one of Altair's many)
    """The labels of some rows."""
    place: dict[str, Any] = {name: alt.expr(f"datum._{name}") for name in ("dx", "dy", "align")}
    return base.transform_filter(rows).mark_text(style=style, baseline="middle", **place).encode(text="_label:N")


def _add_labels(rows: list[dict[str, Any]], spec: ScatterChart, records: Sequence[Record], axes: _Axes) -> None:
    """Put `_label` and its place into the rows that stand out, and into those that are named besides."""
    chosen = dict.fromkeys([*highlighted(spec.highlight, records), *highlighted(spec.named, records)])
    drawn = {row["_rank"] - 1: number for number, row in enumerate(rows)}
    numbers = [drawn[position] for position in chosen if position in drawn]
    dots = [axes.dot(row[spec.x], row[spec.y], row[spec.size]) for row in rows]
    labels = [Label(number, rows[number][text_field(spec.label)]) for number in numbers]
    for label, place in zip(labels, place_labels(dots, labels, _PLOT_WIDTHS, HEIGHT), strict=True):
        rows[label.dot].update(_label=label.text, _align=place.align, _dx=place.dx, _dy=place.dy)


def _scale(domain: tuple[float, float]) -> alt.Scale:
    return alt.Scale(domain=list(domain), nice=False)


def _across(visual: Visual, spec: ScatterChart, currency: str) -> alt.Axis:
    column = visual.columns[spec.x]
    label = axis_label(column.format, currency)
    return alt.Axis(title=column.label, labelExpr=label, grid=False, tickCount=6, titlePadding=10, labelFlush=False)


def _upwards(visual: Visual, spec: ScatterChart, currency: str) -> alt.Axis:
    """The title lies flat above the axis: it reads better than upright, and takes no width from a phone."""
    column = visual.columns[spec.y]
    return alt.Axis(
        title=column.label,
        labelExpr=axis_label(column.format, currency),
        tickCount=6,
        domain=False,
        ticks=False,
        titleAngle=0,
        titleAlign="left",
        titleAnchor="end",
        titleBaseline="bottom",
        titleX=0,
        titleY=-10,
    )


def _size(visual: Visual, spec: ScatterChart, largest: float) -> alt.Size:
    legend = alt.Legend(
        title=visual.columns[spec.size].label,
        orient="bottom",
        direction="horizontal",
        titleOrient="left",
        values=legend_values(largest),
        offset=14,
    )
    return alt.Size(f"{spec.size}:Q", scale=alt.Scale(domain=[0, largest], range=[0, LARGEST]), legend=legend)
