"""From a declaration and a way to run SQL to the finished dashboard.

Here: the order of the work. Not here: the parts (data.py, bar.py, scatter.py, page.py, preview.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from cdc_lake.dashboard import bar, scatter
from cdc_lake.dashboard.chart_spec import BarChart
from cdc_lake.dashboard.data import Query, QueryOnce, Record, fetch, fetch_one
from cdc_lake.dashboard.errors import DashboardError
from cdc_lake.dashboard.formats import Format, readable
from cdc_lake.dashboard.marks import Chart
from cdc_lake.dashboard.message import Figure, fill, plain
from cdc_lake.dashboard.page import Panel, write_page
from cdc_lake.dashboard.preview import preview
from cdc_lake.dashboard.spec import DashboardSpec, Headline, Visual

MAX_ROWS = 5_000
"""More marks than this are not a chart any more, and make a page too heavy for a phone."""


@dataclass(frozen=True)
class RenderedDashboard:
    """A finished dashboard."""

    html: str
    """One page that needs nothing else: no file, no network."""
    previews: dict[str, bytes]
    """A PNG by visual; visuals without rows have none."""
    figures: dict[str, Figure]
    """Headlines and the figures of messages, by name."""
    rows: dict[str, int]
    """Rows of each visual's query."""


def render(spec: DashboardSpec, query: Query, generated_at: datetime, source_note: str) -> RenderedDashboard:
    """The dashboard `spec` over what `query` returns; `source_note` says on the page where that came from.

    The queries run one after the other, each SQL text once: numbers agree as long as the dataset stands still.
    Raises DashboardError when a result does not fit the declaration, ValueError when `generated_at` has no
    time zone, and whatever `query` raises.
    """
    if generated_at.tzinfo is None:
        raise ValueError("generated_at has no time zone; give it one, for example datetime.now(tz=UTC)")
    once = QueryOnce(query)
    figures = _headline_figures(spec, once)
    panels: list[Panel] = []
    previews: dict[str, bytes] = {}
    for visual in spec.visuals:
        records = fetch(once, visual.sql, _formats(visual), f"visual {visual.name}")
        if len(records) > MAX_ROWS:
            raise DashboardError(
                f"visual {visual.name}: the query returns {len(records):,} rows, at most {MAX_ROWS:,} can be drawn; "
                "aggregate in the SQL"
            )
        figures |= _own_figures(visual, once, spec.currency)
        panel = _panel(visual, records, figures, spec.currency)
        panels.append(panel)
        if panel.chart:
            previews[visual.name] = preview(panel.chart, visual.title, plain(panel.message))
    html = write_page(spec, figures, panels, generated_at, source_note)
    return RenderedDashboard(html, previews, figures, {p.visual.name: len(p.records) for p in panels})


def _formats(visual: Visual) -> dict[str, Format]:
    return {name: column.format for name, column in visual.columns.items()}


def _headline_figures(spec: DashboardSpec, query: Query) -> dict[str, Figure]:
    by_sql: dict[str, list[Headline]] = {}
    for headline in spec.headlines:
        by_sql.setdefault(headline.sql, []).append(headline)
    found: dict[str, Figure] = {}
    for sql, headlines in by_sql.items():
        what = f"headlines {', '.join(headline.name for headline in headlines)}"
        record = fetch_one(query, sql, {headline.column: headline.format for headline in headlines}, what)
        for headline in headlines:
            value = record[headline.column]
            found[headline.name] = Figure(value, readable(value, headline.format, spec.currency))
    return {headline.name: found[headline.name] for headline in spec.headlines}


def _own_figures(visual: Visual, query: Query, currency: str) -> dict[str, Figure]:
    if visual.figures is None:
        return {}
    formats = visual.figures.formats
    record = fetch_one(query, visual.figures.sql, formats, f"figures of visual {visual.name}")
    return {name: Figure(record[name], readable(record[name], fmt, currency)) for name, fmt in formats.items()}


def _panel(visual: Visual, records: tuple[Record, ...], figures: Mapping[str, Figure], currency: str) -> Panel:
    message, note = fill(visual.message, figures), None
    chart: Chart
    if isinstance(visual.chart, BarChart):
        chart = bar.draw(visual, visual.chart, records, currency)
        note = fill(visual.chart.running.note, figures) if visual.chart.running else None
    else:
        chart = scatter.draw(visual, visual.chart, records, currency)
    return Panel(visual, records, message, note, chart if records else None)
