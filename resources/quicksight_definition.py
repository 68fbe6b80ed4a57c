"""A dashboard's visuals as QuickSight's Definition, the same for an analysis and a dashboard.

Here: structures of https://docs.aws.amazon.com/quicksight/latest/APIReference/API_AnalysisDefinition.html made from
quicksight_visuals.py. Not here: the dataset (quicksight_data.py), and calls.
"""

from __future__ import annotations

from typing import Any

from resources.quicksight_visuals import Board, Category, Measure, NumberFormat, Pie, RowSet, Scatter

Part = dict[str, Any]
DATA = "rows"
"""What a definition calls its only dataset."""
_COLUMNS, _ROWS = 36, 14  # a visual has the grid's whole width


def definition(board: Board, data_set_arn: str, sheet_id: str) -> Part:
    """The Definition. Raises ValueError where a visual names a column that the rows don't have, or can't add up."""
    return {
        "DataSetIdentifierDeclarations": [{"Identifier": DATA, "DataSetArn": data_set_arn}],
        "Sheets": [
            {
                "SheetId": sheet_id,
                "Name": board.title,
                "ContentType": "INTERACTIVE",
                "Visuals": [_visual(board.rows, each) for each in board.visuals],
                "Layouts": [_layout([each.id for each in board.visuals])],
            }
        ],
    }


def _visual(rows: RowSet, visual: Pie | Scatter) -> Part:
    try:
        if isinstance(visual, Pie):
            return {"PieChartVisual": {**_titled(visual), "ChartConfiguration": _pie(rows, visual)}}
        return {"ScatterPlotVisual": {**_titled(visual), "ChartConfiguration": _scatter(rows, visual)}}
    except ValueError as error:
        raise ValueError(f"visual {visual.id}: {error}") from error


def _pie(rows: RowSet, pie: Pie) -> Part:
    by, value = f"{pie.id}-by", f"{pie.id}-value"
    return {
        "FieldWells": {
            "PieChartAggregatedFieldWells": {
                "Category": [_dimension(rows, by, pie.by)],
                "Values": [_measure(rows, value, pie.value)],
            }
        },
        "SortConfiguration": {
            "CategorySort": [{"FieldSort": {"FieldId": value, "Direction": "DESC"}}],
            "CategoryItemsLimit": {"ItemsLimit": pie.slices, "OtherCategories": "INCLUDE"},
        },
        "CategoryLabelOptions": _label(by, pie.by),
        "ValueLabelOptions": _label(value, pie.value),
    }


def _scatter(rows: RowSet, scatter: Scatter) -> Part:
    by, x, y, size = (f"{scatter.id}-{each}" for each in ("by", "x", "y", "size"))
    return {
        "FieldWells": {
            "ScatterPlotCategoricallyAggregatedFieldWells": {
                "XAxis": [_measure(rows, x, scatter.x)],
                "YAxis": [_measure(rows, y, scatter.y)],
                "Category": [_dimension(rows, by, scatter.by)],
                "Size": [_measure(rows, size, scatter.size)],
            }
        },
        "XAxisLabelOptions": _label(x, scatter.x),
        "YAxisLabelOptions": _label(y, scatter.y),
    }


def _titled(visual: Pie | Scatter) -> Part:
    title = {"Visibility": "VISIBLE", "FormatText": {"PlainText": visual.title}}
    return {"VisualId": visual.id, "Title": title, "Subtitle": {"Visibility": "HIDDEN"}}


def _dimension(rows: RowSet, field: str, by: Category) -> Part:
    kind = {"STRING": "Categorical", "DATETIME": "Date"}.get(rows.column(by.column).type, "Numerical")
    return {f"{kind}DimensionField": {"FieldId": field, "Column": _column(by.column)}}


def _measure(rows: RowSet, field: str, measure: Measure) -> Part:
    kind = rows.column(measure.column).type
    common = {"FieldId": field, "Column": _column(measure.column)}
    if kind in ("INTEGER", "DECIMAL"):
        aggregation = {"SimpleNumericalAggregation": measure.aggregate}
        written = {"FormatConfiguration": _number(measure.format)}
        return {"NumericalMeasureField": {**common, "AggregationFunction": aggregation, "FormatConfiguration": written}}
    if measure.aggregate not in ("COUNT", "DISTINCT_COUNT"):
        raise ValueError(f"{measure.aggregate} takes a number, and {measure.column} is {kind}")
    name = "CategoricalMeasureField" if kind == "STRING" else "DateMeasureField"
    return {name: {**common, "AggregationFunction": measure.aggregate}}


def _number(written: NumberFormat) -> Part:
    shape: Part = {
        "DecimalPlacesConfiguration": {"DecimalPlaces": written.places},
        "SeparatorConfiguration": {
            "DecimalSeparator": "DOT",
            "ThousandsSeparator": {"Symbol": "COMMA", "Visibility": "VISIBLE"},
        },
    }
    if written.percent:
        return {"PercentageDisplayFormatConfiguration": shape}
    prefix = {"Prefix": written.prefix} if written.prefix else {}
    return {"NumberDisplayFormatConfiguration": {**shape, **prefix, "NumberScale": "NONE"}}


def _label(field: str, of: Category | Measure) -> Part:
    applies = {"FieldId": field, "Column": _column(of.column)}
    return {"Visibility": "VISIBLE", "AxisLabelOptions": [{"CustomLabel": of.label, "ApplyTo": applies}]}


def _column(name: str) -> Part:
    return {"DataSetIdentifier": DATA, "ColumnName": name}


def _layout(visuals: list[str]) -> Part:
    elements = [
        {
            "ElementId": visual,
            "ElementType": "VISUAL",
            "ColumnIndex": 0,
            "ColumnSpan": _COLUMNS,
            "RowIndex": number * _ROWS,
            "RowSpan": _ROWS,
        }
        for number, visual in enumerate(visuals)
    ]
    return {"Configuration": {"GridLayout": {"Elements": elements}}}
