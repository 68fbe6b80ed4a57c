"""What is wrong with the Definition of an analysis or dashboard, as QuickSight tells it: after the call, as a failure.

Here: that datasets are there, that fields name columns of them, and numbers where numbers are taken. Not here: what
else QuickSight checks: layouts, filters, parameters, expressions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cdc_lake_tests.aws_api.quicksight.data_sets import output_columns
from cdc_lake_tests.aws_api.quicksight.objects import Objects

Error = dict[str, Any]
_NUMBERS = ("INTEGER", "DECIMAL")


def faults(objects: Objects, definition: dict[str, Any]) -> list[Error]:
    """The errors, none where it can be shown."""
    found: list[Error] = []
    data_sets: dict[str, tuple[str, dict[str, str]]] = {}
    for each in definition["DataSetIdentifierDeclarations"]:
        arn = each["DataSetArn"]
        record = objects.at(arn)
        if record is None or record["kind"] != "DataSet":
            found.append(_error("DATA_SET_NOT_FOUND", f"Data set {arn} is not found.", ""))
            continue
        columns = {column["Name"]: column["Type"] for column in output_columns(record)}
        own = {field["Name"]: "DECIMAL" for field in definition.get("CalculatedFields", [])}
        data_sets[each["Identifier"]] = arn, columns | own
    if found:
        return found
    for sheet in definition.get("Sheets", []):
        for visual in sheet.get("Visuals", []):
            for path, field, column in _columns(visual, f"sheet/{sheet['SheetId']}/visual"):
                found += _faults_of(data_sets, path, field, column)
    return found


def _faults_of(
    data_sets: dict[str, tuple[str, dict[str, str]]], path: str, field: str, column: dict[str, str]
) -> list[Error]:
    name = column["ColumnName"]
    if column.get("DataSetIdentifier") not in data_sets:
        return [_error("DATA_SET_NOT_FOUND", f"No data set is declared for column '{name}'.", path)]
    arn, columns = data_sets[column["DataSetIdentifier"]]
    if name not in columns:
        return [_error("COLUMN_REPLACEMENT_MISSING", f"Required column '{name}' is missing in data set '{arn}'", path)]
    if field.startswith("Numerical") and columns[name] not in _NUMBERS:
        said = f"Column '{name}' in data set '{arn}' is {columns[name]}, where a number is required"
        return [_error("COLUMN_TYPE_MISMATCH", said, path)]
    return []


def _columns(part: object, path: str, field: str = "") -> Iterator[tuple[str, str, dict[str, str]]]:
    """Each column that is named below a part: its path, the structure it stands in, and itself."""
    if isinstance(part, list):
        for each in part:
            yield from _columns(each, path, field)
    elif isinstance(part, dict):
        if "ColumnName" in part:
            yield path, field, part
            return
        for name, each in part.items():
            inner = f"{path}/{part['VisualId']}" if "VisualId" in part else path
            # The field a column stands in is two up: NumericalMeasureField.Column.ColumnName.
            yield from _columns(each, inner, field if name == "Column" else name)


def _error(kind: str, message: str, path: str) -> Error:
    return {"Type": kind, "Message": message, **({"ViolatedEntities": [{"Path": path}]} if path else {})}
