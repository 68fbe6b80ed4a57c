"""Vega-Lite specifications with their rows and tooltips.

Colours are CSS variables (`var(--text)`), so that one chart follows the page's light and dark theme.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cdc_lake.dashboard.formats import Format, exact
from cdc_lake.dashboard.queries import Record
from cdc_lake.dashboard.spec import Visual

VEGA_LITE = "6.1"
"""The Vega-Lite version of the specifications, in the format of vl_convert's parameter `vl_version`."""
ASSETS = Path(__file__).parent / "assets"


def chart(visual: Visual, records: Sequence[Record], *, preview: bool = False) -> dict[str, Any]:
    """Return the visual's specification with its rows; omits rows with NULL in a numeric field of the chart.

    The specification can use the parameter `preview`, which is true in a PNG, where Vega has no canvas.
    """
    numbers = [name for name in visual.fields() if name in visual.columns and visual.columns[name].format.numeric]
    rows = [
        {name: _json(record[name], column.format) for name, column in visual.columns.items()}
        for record in records
        if all(record[name] is not None for name in numbers)
    ]
    return {
        **visual.chart,
        "params": [*visual.chart.get("params", []), {"name": "preview", "value": preview}],
        "encoding": {**visual.chart.get("encoding", {}), "tooltip": _tooltip(visual)},
        "data": {"values": rows},
    }


def config(currency: str) -> dict[str, Any]:
    """Return the Vega-Lite configuration of all charts."""
    number = {"decimal": ".", "thousands": ",", "grouping": [3], "currency": [currency, ""]}
    theme: dict[str, Any] = json.loads((ASSETS / "theme.json").read_text(encoding="utf-8"))
    return {**theme, "locale": {"number": number}}


def _tooltip(visual: Visual) -> list[dict[str, str]]:
    """Return the tooltip: all columns except yes/no ones, with their headings and formats."""
    return [
        {"field": name, "title": visual.heading(name)} | ({"format": column.format.d3} if column.format.numeric else {})
        for name, column in visual.columns.items()
        if column.format is not Format.YES_NO
    ]


def _json(value: object, fmt: Format) -> object:
    if value is None:
        return None
    if fmt is Format.YES_NO:
        return bool(value)
    return float(str(value)) if fmt.numeric else exact(value)
