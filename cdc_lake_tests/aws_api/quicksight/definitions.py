"""Errors of the Definition of an analysis or dashboard: datasets and columns that do not exist, texts as numbers.

QuickSight also checks layouts, filters, parameters and expressions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cdc_lake_tests.aws_api.quicksight.data_sets import output_columns
from cdc_lake_tests.aws_api.quicksight.objects import Objects

Error = dict[str, Any]
_NUMBERS = ("INTEGER", "DECIMAL")


def errors(objects: Objects, definition: dict[str, Any]) -> list[Error]:
    """Return the errors, an empty list if the definition is valid."""
    columns: dict[str, dict[str, str]] = {}
    arns: dict[str, str] = {}
    for each in definition["DataSetIdentifierDeclarations"]:
        identifier, arn = each["Identifier"], each["DataSetArn"]
        data_set = objects.find(arn)
        if data_set is None:
            return [{"Type": "DATA_SET_NOT_FOUND", "Message": f"Data set {arn} is not found."}]
        computed = {field["Name"]: "DECIMAL" for field in definition.get("CalculatedFields", [])}
        columns[identifier], arns[identifier] = output_columns(data_set) | computed, arn
    found: list[Error] = []
    for field, column in _columns(definition["Sheets"], ""):
        name, identifier = column["ColumnName"], column["DataSetIdentifier"]
        kind = columns[identifier].get(name)
        if kind is None:
            message = f"Required column '{name}' is missing in data set '{arns[identifier]}'"
            found.append({"Type": "COLUMN_REPLACEMENT_MISSING", "Message": message})
        elif field.startswith("Numerical") and kind not in _NUMBERS:
            message = f"Column '{name}' in data set '{arns[identifier]}' is {kind}, where a number is required"
            found.append({"Type": "COLUMN_TYPE_MISMATCH", "Message": message})
    return found


def _columns(part: object, field: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield each column below a part of a definition, with the name of the field that uses it."""
    if isinstance(part, list):
        for each in part:
            yield from _columns(each, field)
    elif isinstance(part, dict) and "ColumnName" in part:
        yield field, part
    elif isinstance(part, dict):
        for name, each in part.items():
            # NumericalMeasureField.Column.ColumnName: the field is two levels up.
            yield from _columns(each, field if name == "Column" else name)
