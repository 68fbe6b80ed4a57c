"""Render a dashboard: run its queries, check the results, and write the page and the previews."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cdc_lake.dashboard.charts import chart
from cdc_lake.dashboard.page import Panel, write_page
from cdc_lake.dashboard.preview import preview
from cdc_lake.dashboard.queries import Query, fetch, fetch_one, texts
from cdc_lake.dashboard.spec import DashboardError, DashboardSpec

MAX_ROWS = 5_000
"""A chart with more marks is not readable, and its page is too heavy for a phone."""


@dataclass(frozen=True)
class Rendered:
    """A rendered dashboard."""

    html: str
    """One page that loads no other file."""
    previews: dict[str, bytes]
    """A PNG for each visual that has rows."""
    rows: dict[str, int]
    """The number of rows of each visual's query."""


def render(spec: DashboardSpec, query: Query, rendered_at: datetime, source_note: str) -> Rendered:
    """Return the dashboard; the page's footer contains `source_note`.

    The queries do not run in one transaction, so numbers agree only if the dataset does not change.
    Raises DashboardError if a result does not match the YAML, ValueError if `rendered_at` has no time zone, and what
    `query` raises.
    """
    if rendered_at.tzinfo is None:
        raise ValueError("Cannot render: rendered_at has no time zone. Pass for example datetime.now(UTC).")
    key_figures = fetch_one(query, spec.key_figures, "key_figures")
    panels, previews = list[Panel](), dict[str, bytes]()
    for visual in spec.visuals:
        records = fetch(query, visual, f"visual {visual.name}")
        if len(records) > MAX_ROWS:
            raise DashboardError(
                f"Cannot draw visual {visual.name}: the query returns {len(records):,} rows, but a chart can show "
                f"at most {MAX_ROWS:,}. Aggregate in the SQL."
            )
        record = fetch_one(query, visual.values, f"values of visual {visual.name}")
        values = {**texts(spec.key_figures, key_figures, spec.currency), **texts(visual.values, record, spec.currency)}
        panel = Panel(visual, records, values, chart(visual, records))
        panels.append(panel)
        if records:
            message = visual.message.format(**values)
            try:
                previews[visual.name] = preview(visual, records, panel.title, message, spec.currency)
            except ValueError as error:
                reason = " ".join(str(error).splitlines()[:2])
                raise DashboardError(
                    f"Cannot draw visual {visual.name}: Vega-Lite rejects the chart ({reason}). Correct it in the YAML."
                ) from error
    html = write_page(spec, key_figures, panels, rendered_at, source_note)
    return Rendered(html, previews, {panel.visual.name: len(panel.records) for panel in panels})
