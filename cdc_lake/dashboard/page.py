"""The page: one HTML file with the charts' library, the charts, their data and their SQL inside.

Here: what goes into the template, and the policy that keeps the page from fetching anything.
The look is in assets/page.css, the behaviour in assets/page.js, the structure in assets/page.html.
"""

from __future__ import annotations

import base64
import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from importlib.resources import files
from typing import Any

import vl_convert
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from cdc_lake.dashboard.data import Record
from cdc_lake.dashboard.formats import exact
from cdc_lake.dashboard.marks import Chart
from cdc_lake.dashboard.message import Figure, Segment
from cdc_lake.dashboard.preview import chart_spec, vl_version
from cdc_lake.dashboard.spec import DashboardSpec, Visual
from cdc_lake.dashboard.theme import DARK, LIGHT, chart_config
from infra.local.cache import cache_folder
from infra.local.files import write_atomic

log = logging.getLogger(__name__)

_SNIPPET = "window.vegaEmbed = vegaEmbed;"


@dataclass(frozen=True)
class Panel:
    """A visual with what its queries gave."""

    visual: Visual
    records: tuple[Record, ...]
    message: tuple[Segment, ...]
    note: tuple[Segment, ...] | None
    chart: Chart | None
    """None: there are no rows to draw."""


def write_page(
    spec: DashboardSpec,
    figures: Mapping[str, Figure],
    panels: Sequence[Panel],
    generated_at: datetime,
    source_note: str,
) -> str:
    """The whole page."""
    assets = files("cdc_lake.dashboard") / "assets"
    scripts = [chart_library(), _safe_script((assets / "page.js").read_text(encoding="utf-8"))]
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((assets / "page.html").read_text(encoding="utf-8"))
    moment = generated_at.astimezone(UTC)
    return template.render(
        spec=spec,
        policy=_policy(scripts),
        style=Markup((assets / "page.css").read_text(encoding="utf-8")),  # noqa: S704  (a file of ours)
        scripts=[Markup(script) for script in scripts],  # noqa: S704  (ours and the library, made safe above)
        charts=_embedded_json(_charts(panels)),
        headlines=[(headline.label, figures[headline.name]) for headline in spec.headlines],
        panels=[_view(panel) for panel in panels],
        empty=not any(panel.records for panel in panels),
        moment_iso=moment.isoformat(timespec="seconds"),
        moment=f"{moment:%Y-%m-%d %H:%M:%S} UTC",
        source_note=source_note,
        exact=exact,
    )


@lru_cache(maxsize=1)
def chart_library() -> str:
    """Vega, Vega-Lite and vega-embed as one script that defines `vegaEmbed`; about 900 kB.

    Bundling takes 1.4 s, and each run draws in a process of its own: what a version of vl-convert makes is kept in the
    cache folder, where it may be written.
    """
    of = f"{version('vl-convert-python')} {vl_version()} {_SNIPPET}"
    kept = cache_folder() / "charts" / f"vega-{hashlib.sha256(of.encode()).hexdigest()[:12]}.js"
    if kept.is_file():
        return _safe_script(kept.read_text(encoding="utf-8"))
    bundle = vl_convert.javascript_bundle(_SNIPPET, vl_version=vl_version())
    try:
        kept.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(kept, bundle)
    except OSError as error:  # the cache may be another user's, or on a full disk
        log.warning("charts' library not kept, and bundled anew next time: %s", error)
    return _safe_script(bundle)


def _safe_script(text: str) -> str:
    """`text` so that no string in it ends the script element that holds it."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(scripts: Sequence[str]) -> str:
    """A Content-Security-Policy: nothing is fetched, and no script runs but these, whatever the data holds."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"


def _charts(panels: Sequence[Panel]) -> dict[str, Any]:
    return {
        "config": {"light": chart_config(LIGHT), "dark": chart_config(DARK)},
        "charts": {p.visual.name: chart_spec(p.chart, "container") for p in panels if p.chart},
    }


def _embedded_json(value: object) -> Markup:
    """JSON that can stand in a script element: `<` only in its escaped form."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    escaped = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
    for character, replacement in escaped.items():
        text = text.replace(character, replacement)
    return Markup(text)  # noqa: S704  (what could end the script element is escaped above)


def _view(panel: Panel) -> dict[str, Any]:
    visual, total = panel.visual, len(panel.records)
    plural = f"{total:,} row" if total == 1 else f"{total:,} rows"
    shown = panel.chart.shown if panel.chart else 0
    step = panel.chart.step if panel.chart else None
    return {
        "visual": visual,
        "message": panel.message,
        "note": panel.note,
        "drawn": panel.chart is not None,
        "rows": plural,
        "total": total,
        "more": step is not None and shown < total,
        "undrawn": total - shown if step is None and panel.chart else 0,
        "step": step,
        "shown": shown,
        "table": panel.records,
        "sql": [visual.sql, *([visual.figures.sql] if visual.figures else [])],
    }
