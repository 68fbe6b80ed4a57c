"""Return a dashboard's QuickSight templates with its SQL, and a checksum that detects changed rows."""

from __future__ import annotations

from cdc_lake.dashboard.queries import Query
from cdc_lake.dashboard.spec import DashboardError, DashboardSpec, QuickSightSpec
from cdc_lake.dashboard.sql import qualified
from resources.quicksight.templates import DashboardTemplates, selected_columns


def templates(spec: DashboardSpec, dashboard_id: str) -> DashboardTemplates:
    """Return the templates. Their SQL names the database of each table, because QuickSight has no default one."""
    declared = _declared(spec)
    sql = qualified(declared.sql, spec.database)
    return DashboardTemplates(dashboard_id, spec.title, sql, declared.data_set, declared.definition)


def row_checksum(spec: DashboardSpec, query: Query) -> str:
    """Return the number of rows and a checksum of all rows, as one text: it changes when a row changes.

    Athena scans the rows once and returns one row. Raises what `query` raises.
    """
    declared = _declared(spec)
    columns = ", ".join(f'"{name}"' for name in selected_columns(declared.data_set))
    (row,) = query(
        f"SELECT count(*) AS row_count, to_hex(checksum(json_format(CAST(ROW({columns}) AS json)))) AS row_checksum"
        f"\nFROM (\n{declared.sql}\n) AS dashboard_rows"
    ).rows
    return " ".join(str(value) for value in row)


def _declared(spec: DashboardSpec) -> QuickSightSpec:
    if spec.quicksight is None:
        raise DashboardError(
            f"Cannot publish the dashboard '{spec.title}' in QuickSight: its YAML has no field quicksight. Add it, or"
            " remove the dashboard from the pipeline."
        )
    return spec.quicksight
