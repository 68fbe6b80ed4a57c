"""The rows of a visual made ready for drawing, and what all chart kinds have in common.

Here: records with numbers for positions, formatted texts for labels and tooltips, and the highlight rule.
Not here: the chart kinds (bar.py, scatter.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import altair as alt

from cdc_lake.dashboard.chart_spec import Highlight
from cdc_lake.dashboard.data import Record
from cdc_lake.dashboard.formats import exact, readable
from cdc_lake.dashboard.spec import Visual
from cdc_lake.dashboard.theme import TIERS


@dataclass(frozen=True)
class Chart:
    """A drawn visual: an Altair chart without width, title and colours, which page and preview add."""

    chart: alt.LayerChart | alt.FacetChart
    beside: int
    """About how much room names, axes and columns take at the plot's sides, in pixels."""
    rows: int
    shown: int
    """Rows to be seen at first."""
    step: int | None = None
    """Pixels that a row takes, where the chart can show more: it has a parameter `shown` for them."""


def text_field(column: str) -> str:
    """The field that holds a column's values as people read them."""
    return f"{column}__text"


def number(value: object) -> float | None:
    """A position on an axis; None where there is no value."""
    return None if value is None else float(str(value))


def highlighted(rule: Highlight | None, records: Sequence[Record]) -> list[int]:
    """The rows (from 0) that stand out, the strongest first; rows without a value never do."""
    if rule is None:
        return []
    ranked = [
        (-value, row)
        for row, record in enumerate(records)
        if (value := number(record[rule.by])) is not None and (rule.where is None or record[rule.where])
    ]
    return [row for _, row in sorted(ranked)][: rule.top]


def draw_data(visual: Visual, records: Sequence[Record], currency: str) -> list[dict[str, Any]]:
    """A record a row: each column as number or text, again as formatted text, its rank from 1 and its tier."""
    rows = []
    chosen = set(highlighted(visual.chart.highlight, records))
    for position, record in enumerate(records):
        row: dict[str, Any] = {"_rank": position + 1, "_tier": "highlight" if position in chosen else "other"}
        for name, column in visual.columns.items():
            value = record[name]
            row[name] = number(value) if column.format.numeric else exact(value)
            row[text_field(name)] = readable(value, column.format, currency)
        rows.append(row)
    return rows


def inline(rows: Sequence[dict[str, Any]]) -> alt.InlineData:
    """The rows inside the chart's specification."""
    return alt.InlineData(values=list(rows))


def tier_color() -> alt.Color:
    """Colours by tier, taken from the configuration's range so that they follow the scheme."""
    return alt.Color("_tier:N", scale=alt.Scale(domain=list(TIERS), range="category"), legend=None)


def tooltips(visual: Visual) -> list[alt.Tooltip]:
    """The declared columns under their labels, as people read them."""
    return [alt.Tooltip(f"{text_field(name)}:N", title=visual.columns[name].label) for name in visual.chart.tooltip]
