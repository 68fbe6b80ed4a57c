"""Horizontal bars: names at the left, values and a running share in columns at the right.

Here: the drawing of `kind: bar`. Numbers stand in columns of their own, so that nothing overlaps however
narrow the page is. A parameter `shown` says how many bars are drawn.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import altair as alt

from cdc_lake.dashboard.chart_spec import BarChart
from cdc_lake.dashboard.data import Record
from cdc_lake.dashboard.errors import DashboardError
from cdc_lake.dashboard.marks import Chart, draw_data, inline, text_field, tier_color, tooltips
from cdc_lake.dashboard.spec import Visual

STEP = 24
_CHARACTER = 7
_GAP = 14
_NAMES = 60


def draw(visual: Visual, spec: BarChart, records: tuple[Record, ...], currency: str) -> Chart:
    """The bars of `records` in their order. Raises DashboardError when two rows have the same name."""
    rows = draw_data(visual, records, currency)
    category, mark = text_field(spec.y), spec.running.mark if spec.running else 0
    twice = [name for name, count in Counter(row[category] for row in rows).items() if count > 1]
    if twice:
        raise DashboardError(
            f"visual {visual.name}: {len(twice)} values of {spec.y} come more than once, first {twice[0]}; "
            f"group the SQL by {spec.y}"
        )
    for row in rows:
        if row["_tier"] == "other" and row["_rank"] <= mark:
            row["_tier"] = "marked"
        row["_at_mark"] = row["_rank"] == mark

    base = alt.Chart(inline(rows)).encode(y=_names(category), tooltip=tooltips(visual))
    zero_to_longest = alt.Scale(nice=False, zero=True)
    layers: list[Any] = [
        base.mark_bar(cornerRadiusEnd=2, height={"band": 0.72}).encode(
            x=alt.X(f"{spec.x}:Q", scale=zero_to_longest, axis=None), color=tier_color()
        )
    ]
    edge = 0
    for name in (spec.x, *([spec.running.column] if spec.running else [])):
        heading = visual.columns[name].label.split()
        widest = max(len(text) for text in (*heading, *(row[text_field(name)] for row in rows)))
        edge += _GAP + widest * _CHARACTER
        layers += _column(base, text_field(name), heading, edge, quiet=name != spec.x)
    if 0 < mark <= len(rows):
        layers.append(_mark_line(base, category, edge))
    shown = min(spec.show, len(rows))
    chart = alt.layer(*layers).add_params(alt.param(name="shown", value=shown))
    chart = chart.transform_filter("datum._rank <= shown").properties(height=shown * STEP)
    return Chart(chart, beside=edge + _NAMES, rows=len(rows), shown=shown, step=STEP)


def _names(category: str) -> alt.Y:
    axis = alt.Axis(title=None, ticks=False, domain=False, labelLimit=130, labelPadding=8)
    return alt.Y(f"{category}:N", sort=None, axis=axis)


def _column(base: alt.Chart, field: str, heading: list[str], edge: int, *, quiet: bool) -> list[Any]:
    """A right-aligned column of texts, `edge` pixels right of the plot, with its heading above the first bar."""
    style = "quiet" if quiet else "value"
    right = alt.value("width")
    texts = base.mark_text(align="right", dx=edge, style=style).encode(x=right, text=f"{field}:N")
    bold = base.transform_filter("datum._at_mark").mark_text(align="right", dx=edge, style="label")
    first = base.transform_filter("datum._rank == 1")
    title = first.mark_text(align="right", dx=edge, baseline="bottom", lineHeight=14, fontSize=11, style="quiet")
    encoded = title.encode(x=right, y=alt.value(-6 - 14 * (len(heading) - 1)), text=alt.value(heading))
    if not quiet:
        return [texts, encoded]
    unmarked = texts.transform_filter("!datum._at_mark")
    return [unmarked, bold.encode(x=right, text=f"{field}:N"), encoded]


def _mark_line(base: alt.Chart, category: str, edge: int) -> Any:  # noqa: ANN401  (one of Altair's many)
    """A line below the last bar of the mark, from the first bar's start to the outermost column."""
    line = base.transform_filter("datum._at_mark").mark_rule(strokeDash=[2, 2], x2Offset=edge)
    return line.encode(y=alt.Y(f"{category}:N", sort=None, bandPosition=1), x=alt.value(0), x2=alt.value("width"))
