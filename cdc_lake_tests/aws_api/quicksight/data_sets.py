"""A dataset's tables: its SQL, the columns that it declares and computes, and what is wrong with them.

Here: one custom SQL table and one logical table over it; expressions are looked through for the columns they name, and
not evaluated: a computed column is DECIMAL. Not here: operations (quicksight.py), reading rows
(quicksight_ingestions.py).
"""

from __future__ import annotations

import re
from typing import Any

from cdc_lake_tests.aws_api.quicksight.objects import Record, invalid
from infra.local.aws_api.athena.result_columns import Column

_TYPES = ("STRING", "INTEGER", "DECIMAL", "DATETIME")
_INTEGERS = ("tinyint", "smallint", "integer", "bigint")
_READ_FROM = {
    "STRING": ("varchar", "char", "boolean", "json", "uuid"),
    "INTEGER": _INTEGERS,
    "DECIMAL": (*_INTEGERS, "decimal", "double", "real"),
    "DATETIME": ("date", "timestamp", "timestamp with time zone"),
}
_NAMED = re.compile(r"{([^{}]+)}")


def custom_sql(data_set: Record) -> dict[str, Any]:
    """The CustomSql of a request or record. Raises InvalidParameterValueException for any other physical table."""
    tables = list(data_set["PhysicalTableMap"].values())
    if len(tables) != 1 or "CustomSql" not in tables[0]:
        raise invalid("The local QuickSight has datasets of one physical table, with a CustomSql.")
    return dict(tables[0]["CustomSql"])


def output_columns(data_set: Record) -> list[dict[str, str]]:
    """The columns that visuals can read. Raises InvalidParameterValueException for what can't be computed or shown."""
    columns = {each["Name"]: each["Type"] for each in custom_sql(data_set).get("Columns", [])}
    for name, kind in columns.items():
        if kind not in _TYPES:
            raise invalid(f"Column {name} has the type {kind}; the local QuickSight has {', '.join(_TYPES)}.")
    for step in _transforms(data_set):
        match step:
            case {"CreateColumnsOperation": {"Columns": computed}}:
                for each in computed:
                    if set(_NAMED.findall(each["Expression"])) - columns.keys():
                        raise invalid(
                            "Unable to process your request while preparing the table view from your schema, calculated"
                            f" columns [{each['ColumnName']}] are invalid. ErrorType: CONTEXTUAL_UNKNOWN_SYMBOL"
                        )
                    columns[each["ColumnName"]] = "DECIMAL"
            case {"ProjectOperation": {"ProjectedColumns": shown}}:
                if missing := [name for name in shown if name not in columns]:
                    raise invalid(f"ProjectedColumns names {', '.join(missing)}, which the table does not have.")
                columns = {name: columns[name] for name in shown}
            case _:
                raise invalid(f"The local QuickSight has no {', '.join(step)}.")
    return [{"Name": name, "Type": kind} for name, kind in columns.items()]


def _transforms(data_set: Record) -> list[dict[str, Any]]:
    logical = list(data_set.get("LogicalTableMap", {}).values())
    if not logical:
        return []
    source = logical[0]["Source"].get("PhysicalTableId")
    if len(logical) != 1 or source not in data_set["PhysicalTableMap"]:
        raise invalid("The local QuickSight has datasets of one logical table, over the physical one.")
    return list(logical[0].get("DataTransforms", []))


def mismatch(data_set: Record, given: list[Column]) -> str | None:
    """How the columns that the SQL gives are not those declared, None where they are; more of them are no matter."""
    raw = {each.name: str(each.signature["rawType"]) for each in given}
    for each in custom_sql(data_set).get("Columns", []):
        name, kind = each["Name"], each["Type"]
        if name not in raw:
            return f"the SQL does not give the column {name}; it gives {', '.join(raw)}"
        if raw[name] not in _READ_FROM[kind]:
            return f"column {name} is declared as {kind}, and the SQL gives {raw[name]}"
    return None
