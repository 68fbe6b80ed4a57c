"""Render a chart as PNG, for places that show images but no HTML pages, such as Dagster's metadata."""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Sequence

import vl_convert

from cdc_lake.dashboard.charts import ASSETS, VEGA_LITE, chart, config
from cdc_lake.dashboard.queries import Record
from cdc_lake.dashboard.spec import Visual

WIDTH = 640
"""Width of the plot in pixels, without axes and text columns."""


def preview(visual: Visual, records: Sequence[Record], title: str, message: str, currency: str) -> bytes:
    """Return the chart as PNG in the light theme, with title and message above it.

    Raises ValueError, with Vega-Lite's message, for a specification that is not valid.
    """
    subtitle = textwrap.wrap(message, 110)
    heading = {"text": title, "subtitle": subtitle, "anchor": "start", "frame": "group", "offset": 18}
    spec = chart(visual, records[: visual.show], preview=True) | {"width": WIDTH, "padding": 20, "title": heading}
    vega = vl_convert.vegalite_to_vega(spec, vl_version=VEGA_LITE, config=config(currency))
    # vega-embed applies these JSON patches in the browser; all of them add marks.
    for patch in spec.get("usermeta", {}).get("embedOptions", {}).get("patch", []):
        vega["marks"].append(patch["value"])
    css = (ASSETS / "page.css").read_text(encoding="utf-8")
    light = dict(re.findall(r"--([\w-]+): (#\w+)", css.partition("@media")[0]))
    text = re.sub(r"var\(--([\w-]+)\)", lambda match: light[match[1]], json.dumps(vega))
    png: bytes = vl_convert.vega_to_png(json.loads(text) | {"background": light["card"]}, scale=1.25)
    return png
