"""Dashboards declared in YAML and rendered as one self-contained page, with a PNG of each chart.

Here: everything between a declaration and the finished page; whoever has a way to run SQL can use it. Drawing is in
`render`, which is imported by whoever draws: it brings the charts' libraries with it.
Not here: how a query is run (the caller brings that), the Dagster asset, and serving the page.
"""

from cdc_lake.dashboard.data import Query, QueryOnce, QueryResult, Rows
from cdc_lake.dashboard.errors import DashboardError
from cdc_lake.dashboard.fingerprint import fingerprint
from cdc_lake.dashboard.load import load_dashboard
from cdc_lake.dashboard.message import Figure
from cdc_lake.dashboard.spec import DashboardSpec

__all__ = [
    "DashboardError",
    "DashboardSpec",
    "Figure",
    "Query",
    "QueryOnce",
    "QueryResult",
    "Rows",
    "fingerprint",
    "load_dashboard",
]
