"""A dashboard's declaration as what QuickSight is asked for.

Here: columns, visuals and their titles, labels and formats; the SQL with its tables' database, which QuickSight has no
default for; the question whether the rows have changed. Not here: calls (resources/quicksight.py).
"""

from __future__ import annotations

from typing import cast

from cdc_lake.dashboard.chart_spec import BarChart, ScatterChart
from cdc_lake.dashboard.data import Query
from cdc_lake.dashboard.errors import DashboardError
from cdc_lake.dashboard.formats import Format
from cdc_lake.dashboard.quicksight_spec import Measure, PieWells, QuickSightSpec, ScatterWells
from cdc_lake.dashboard.spec import DashboardSpec, Visual
from cdc_lake.dashboard.sql import qualified
from resources import quicksight_visuals as there


def board(spec: DashboardSpec, board_id: str) -> there.Board:
    """The dashboard. Raises DashboardError where the declaration has no `quicksight`."""
    return there.Board(board_id, spec.title, _rows(spec), tuple(_visuals(spec)))


def state_of_rows(spec: DashboardSpec, query: Query) -> str:
    """A short text that is another one as soon as a row is: how many there are, and a checksum of them all.

    It takes one scan of the rows and brings none of them here. Raises what `query` raises.
    """
    declared = _declared(spec)
    columns = ", ".join(f'"{name}"' for name in declared.columns)
    (row,) = query(
        f"SELECT count(*) AS row_count, to_hex(checksum(json_format(CAST(ROW({columns}) AS json)))) AS row_checksum"
        f"\nFROM (\n{declared.sql}\n) AS dashboard_rows"
    ).rows
    return " ".join(str(value) for value in row)


def _declared(spec: DashboardSpec) -> QuickSightSpec:
    if spec.quicksight is None:
        raise DashboardError(
            f"The dashboard '{spec.title}' has nothing to say to QuickSight; add the field quicksight to its YAML"
            " (cdc_lake/dashboard/quicksight_spec.py has its fields), or take it out of the pipeline's dashboards"
        )
    return spec.quicksight


def _rows(spec: DashboardSpec) -> there.RowSet:
    declared = _declared(spec)
    columns = [there.Column(name, _type(kind)) for name, kind in declared.columns.items()]
    columns += [there.Column(name, "DECIMAL", expression) for name, expression in declared.calculated.items()]
    return there.RowSet(qualified(declared.sql, spec.database), tuple(columns))


def _visuals(spec: DashboardSpec) -> list[there.Pie | there.Scatter]:
    pages = {visual.name: visual for visual in spec.visuals}
    found: list[there.Pie | there.Scatter] = []
    for each in _declared(spec).visuals:
        page = pages[each.visual]
        match each.chart, page.chart:
            case PieWells() as pie, BarChart() as bar:
                by, value = _category(page, pie.by, bar.y), _measure(spec, page, pie.value, bar.x)
                found.append(there.Pie(page.name, page.title, by, value, bar.show))
            case ScatterWells() as wells, ScatterChart() as dots:
                by = _category(page, wells.by, dots.label)
                x, y = _measure(spec, page, wells.x, dots.x), _measure(spec, page, wells.y, dots.y)
                found.append(
                    there.Scatter(page.name, page.title, by, x, y, _measure(spec, page, wells.size, dots.size))
                )
    return found


def _category(page: Visual, column: str, shown: str) -> there.Category:
    return there.Category(column, page.columns[shown].label)


def _measure(spec: DashboardSpec, page: Visual, measure: Measure, shown: str) -> there.Measure:
    """The measure, labelled and written as the page's column is that shows it."""
    column = page.columns[shown]
    money = column.format in (Format.MONEY, Format.MONEY_EXACT)
    written = there.NumberFormat(spec.currency if money else "", column.format.places, column.format is Format.PERCENT)
    return there.Measure(measure.column, cast(there.Aggregate, measure.aggregate.upper()), column.label, written)


def _type(kind: str) -> there.ColumnType:
    return cast(there.ColumnType, kind.upper())
