"""A dashboard's rows as the tables of a QuickSight dataset: custom SQL, and computed columns over it.

Here: structures of https://docs.aws.amazon.com/quicksight/latest/APIReference/API_CreateDataSet.html. Not here: calls.
"""

from __future__ import annotations

from typing import Any

from resources.quicksight_visuals import RowSet

_PHYSICAL, _LOGICAL = "custom-sql", "rows"
_NAME = "cdc-lake"


def tables(rows: RowSet, data_source_arn: str) -> dict[str, Any]:
    """PhysicalTableMap and LogicalTableMap: the SQL's columns, then the computed ones, all of them to be read."""
    read = [{"Name": each.name, "Type": each.type} for each in rows.columns if each.expression is None]
    query = {"DataSourceArn": data_source_arn, "Name": _NAME, "SqlQuery": rows.sql, "Columns": read}
    computed = [
        {"ColumnName": each.name, "ColumnId": each.name, "Expression": each.expression}
        for each in rows.columns
        if each.expression is not None
    ]
    transforms: list[dict[str, Any]] = [{"CreateColumnsOperation": {"Columns": computed}}] if computed else []
    transforms.append({"ProjectOperation": {"ProjectedColumns": [each.name for each in rows.columns]}})
    logical = {"Alias": _NAME, "DataTransforms": transforms, "Source": {"PhysicalTableId": _PHYSICAL}}
    return {"PhysicalTableMap": {_PHYSICAL: {"CustomSql": query}}, "LogicalTableMap": {_LOGICAL: logical}}
