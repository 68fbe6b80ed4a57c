"""A PNG of a chart, for places that show pictures but no pages.

Here: width, title and colours of the picture. Not here: the page's charts (page.py).
"""

from __future__ import annotations

from typing import Any

import altair as alt
import vl_convert

from cdc_lake.dashboard.marks import Chart
from cdc_lake.dashboard.theme import LIGHT, chart_config

WIDTH = 760
_LINE = 105
"""Characters of the message in one line above the picture."""


def preview(chart: Chart, title: str, message: str) -> bytes:
    """The chart as PNG in the light scheme, about 1,000 pixels wide at 1.25 pixels a unit."""
    spec: dict[str, Any] = chart_spec(chart, WIDTH - chart.beside)
    spec["title"] = {
        "text": title,
        "subtitle": _wrap(message, _LINE),
        "anchor": "start",
        "frame": "group",
        "fontSize": 17,
        "subtitleFontSize": 13,
        "subtitlePadding": 6,
        "offset": 18,
    }
    spec["padding"] = 20
    config = {**chart_config(LIGHT), "background": LIGHT.card}
    png: bytes = vl_convert.vegalite_to_png(spec, vl_version=vl_version(), config=config, scale=1.25)
    return png


def chart_spec(chart: Chart, width: int | str) -> dict[str, Any]:
    """The chart as a Vega-Lite specification; width in pixels, or "container"."""
    spec: dict[str, Any] = chart.chart.properties(width=width).to_dict()
    spec.pop("config", None)  # the scheme's comes in its place
    return spec


def vl_version() -> str:
    """The Vega-Lite version that Altair writes for, as vl_convert names it (6.1)."""
    return ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])


def _wrap(text: str, width: int) -> list[str]:
    lines: list[str] = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
