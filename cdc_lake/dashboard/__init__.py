"""Dashboards: declared in YAML, rendered as one self-contained HTML page and a PNG of each chart.

The package runs no queries: the caller passes a function that does. Import `cdc_lake.dashboard.render` only to render a
page, because its libraries take time to import.

    spec = load_dashboard(Path("customers.yaml"))
    html = render(spec, query, datetime.now(UTC), "Pipeline northwind").html
"""

from cdc_lake.dashboard.queries import Query, Rows, fingerprint
from cdc_lake.dashboard.spec import DashboardError, DashboardSpec, load_dashboard

__all__ = ["DashboardError", "DashboardSpec", "Query", "Rows", "fingerprint", "load_dashboard"]
