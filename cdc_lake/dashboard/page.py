"""Write the HTML page: one file with the charting library, the charts, their data and their SQL.

Structure, look and behaviour are in assets/page.html, page.css and page.js.
"""

from __future__ import annotations

import base64
import hashlib
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from importlib.metadata import version
from typing import Any

import vl_convert
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup, escape

from cdc_lake.dashboard.charts import ASSETS, VEGA_LITE, config
from cdc_lake.dashboard.formats import exact
from cdc_lake.dashboard.queries import Record, texts
from cdc_lake.dashboard.spec import DashboardSpec, Visual
from infra.files import write_atomic
from infra.folders import cache_folder

log = logging.getLogger(__name__)

_SNIPPET = "window.vegaEmbed = vegaEmbed;"


@dataclass(frozen=True)
class Panel:
    """A visual with its data."""

    visual: Visual
    records: Sequence[Record]
    values: Mapping[str, str]
    """The formatted values for title and message."""
    chart: Mapping[str, Any]
    """The chart's specification."""

    @property
    def drawn(self) -> list[dict[str, Any]]:
        """The rows that the chart can draw."""
        rows: list[dict[str, Any]] = self.chart["data"]["values"]
        return rows

    @property
    def title(self) -> str:
        """The visual's title; its name if there is no row to take values from."""
        name = self.visual.name.replace("_", " ").capitalize()
        return self.visual.title.format(**self.values) if self.records else name

    @property
    def message(self) -> Markup:
        """The visual's message as HTML, with its values in bold."""
        values = {name: Markup("<b>{}</b>").format(text) for name, text in self.values.items()}
        return escape(self.visual.message).format(**values)


def write_page(
    spec: DashboardSpec, key_figures: Record, panels: Sequence[Panel], rendered_at: datetime, source_note: str
) -> str:
    """Return the HTML of the page."""
    scripts = [chart_library(), _safe_script((ASSETS / "page.js").read_text(encoding="utf-8"))]
    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((ASSETS / "page.html").read_text(encoding="utf-8"))
    charts = {each.visual.name: {"spec": each.chart, "show": each.visual.show} for each in panels if each.records}
    formatted = texts(spec.key_figures, key_figures, spec.currency)
    return template.render(
        spec=spec,
        policy=_policy(scripts),
        style=(ASSETS / "page.css").read_text(encoding="utf-8"),
        scripts=scripts,
        charts={"config": config(spec.currency), "charts": charts},
        key_figures=[(name, exact(key_figures[name]), text) for name, text in formatted.items()],
        panels=panels,
        rendered_at=rendered_at.astimezone(UTC),
        source_note=source_note,
        exact=exact,
    )


@lru_cache(maxsize=1)
def chart_library() -> str:
    """Return Vega, Vega-Lite and vega-embed as one script that defines `vegaEmbed`; about 900 kB.

    Bundling takes 1.4 s, and each run renders in its own process, so the bundle is stored in the cache folder if that
    is writable: one file for each version of vl-convert.
    """
    cache_key = f"{version('vl-convert-python')} {VEGA_LITE} {_SNIPPET}"
    cached = cache_folder() / "charts" / f"vega-{hashlib.sha256(cache_key.encode()).hexdigest()[:12]}.js"
    if cached.is_file():
        return _safe_script(cached.read_text(encoding="utf-8"))
    bundle = vl_convert.javascript_bundle(_SNIPPET, vl_version=VEGA_LITE)
    try:
        cached.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(cached, bundle)
    except OSError as error:  # the cache may belong to another user, or the disk may be full
        log.warning("Cannot cache the charting library, the next run bundles it again: %s", error)
    return _safe_script(bundle)


def _safe_script(text: str) -> str:
    """Return the script with `</script` and `<!--` escaped, because they would end or change its HTML element."""
    return text.replace("</script", "<\\/script").replace("<!--", "<\\!--")


def _policy(scripts: Sequence[str]) -> str:
    """Return a Content-Security-Policy that forbids all loading, and every script except these."""
    digests = (base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts)
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data:; base-uri 'none'"
