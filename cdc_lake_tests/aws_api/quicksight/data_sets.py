"""Datasets: custom SQL, the columns that it declares and computes, and their ingestions."""

from __future__ import annotations

import re
import time
import uuid
from typing import Any

from cdc_lake_tests.aws_api.quicksight.ingestions import Ingestions
from cdc_lake_tests.aws_api.quicksight.objects import Objects, Record, invalid
from cdc_lake_tests.aws_api.rest_protocol import Operation

Answer = dict[str, Any]
_TABLES = ("PhysicalTableMap", "LogicalTableMap", "ImportMode")
_COLUMN_OF_AN_EXPRESSION = re.compile(r"{([^{}]+)}")


class DataSets:
    """Creates, describes and updates datasets, and ingests their rows."""

    def __init__(self, objects: Objects, ingestions: Ingestions) -> None:
        self._objects, self._ingestions = objects, ingestions
        self.operations: dict[str, Operation] = {
            "CreateDataSet": self._create,
            "DescribeDataSet": self._describe,
            "UpdateDataSet": self._update,
            "ListDataSets": self._list,
            "CreateIngestion": self._create_ingestion,
            "DescribeIngestion": self._describe_ingestion,
            "ListIngestions": self._list_ingestions,
        }

    def _create(self, request: dict[str, Any]) -> Answer:
        self._check(request)
        made = self._objects.add("DataSet", request["DataSetId"], permissions=request["Permissions"])
        return self._changed(made, request)

    def _update(self, request: dict[str, Any]) -> Answer:
        self._check(request)
        return self._changed(self._objects.get("DataSet", request["DataSetId"]), request)

    def _check(self, request: dict[str, Any]) -> None:
        source = custom_sql(request)["DataSourceArn"]
        if self._objects.find(source) is None:
            raise invalid(f"The data source {source} is not found.")
        output_columns(request)

    def _changed(self, data_set: Record, request: dict[str, Any]) -> Answer:
        """Change a dataset; QuickSight itself then ingests the rows of one in SPICE."""
        data_set.update({name: request.get(name, {}) for name in _TABLES}, name=request["Name"], updated=time.time())
        answer = {"Arn": data_set["arn"], "DataSetId": data_set["id"]}
        if data_set["ImportMode"] != "SPICE":
            return answer
        made = self._ingestions.start(data_set, str(uuid.uuid4()))
        return {**answer, "IngestionArn": made["arn"], "IngestionId": made["IngestionId"]}

    def _describe(self, request: dict[str, Any]) -> Answer:
        found = self._objects.get("DataSet", request["DataSetId"])
        tables = {name: found[name] for name in _TABLES}
        columns = [{"Name": name, "Type": kind} for name, kind in output_columns(found).items()]
        return {"DataSet": {**_summary(found), **tables, "OutputColumns": columns}}

    def _list(self, _: dict[str, Any]) -> Answer:
        return {"DataSetSummaries": [_summary(each) for each in self._objects.of("DataSet")]}

    def _create_ingestion(self, request: dict[str, Any]) -> Answer:
        made = self._ingestions.start(self._objects.get("DataSet", request["DataSetId"]), request["IngestionId"])
        return {"Arn": made["arn"], "IngestionId": made["IngestionId"], "IngestionStatus": "INITIALIZED"}

    def _describe_ingestion(self, request: dict[str, Any]) -> Answer:
        id_ = f"{request['DataSetId']}/ingestion/{request['IngestionId']}"
        return {"Ingestion": _described(self._objects.get("Ingestion", id_))}

    def _list_ingestions(self, request: dict[str, Any]) -> Answer:
        arn = self._objects.get("DataSet", request["DataSetId"])["arn"]
        found = [each for each in self._objects.of("Ingestion") if each["data_set"] == arn]
        return {"Ingestions": [_described(each) for each in reversed(found)]}


def custom_sql(data_set: Record) -> dict[str, Any]:
    """Return the CustomSql of a request or record."""
    [table] = data_set["PhysicalTableMap"].values()
    return dict(table["CustomSql"])


def output_columns(data_set: Record) -> dict[str, str]:
    """Return the columns that visuals can use, with their types. Raises InvalidParameterValueException."""
    columns = {each["Name"]: each["Type"] for each in custom_sql(data_set)["Columns"]}
    steps = [step for table in data_set.get("LogicalTableMap", {}).values() for step in table["DataTransforms"]]
    for step in steps:
        for each in step.get("CreateColumnsOperation", {}).get("Columns", []):
            if set(_COLUMN_OF_AN_EXPRESSION.findall(each["Expression"])) - columns.keys():
                raise invalid(
                    "Unable to process your request while preparing the table view from your schema, calculated"
                    f" columns [{each['ColumnName']}] are invalid. ErrorType: CONTEXTUAL_UNKNOWN_SYMBOL"
                )
            columns[each["ColumnName"]] = "DECIMAL"
        if projected := step.get("ProjectOperation", {}).get("ProjectedColumns"):
            if missing := [name for name in projected if name not in columns]:
                raise invalid(f"ProjectedColumns names {', '.join(missing)}, which the table does not have.")
            columns = {name: columns[name] for name in projected}
    return columns


def _summary(data_set: Record) -> Answer:
    return {"Arn": data_set["arn"], "DataSetId": data_set["id"], "Name": data_set["name"]}


def _described(ingestion: Record) -> Answer:
    members = ("IngestionId", "IngestionStatus", "ErrorInfo", "RowInfo")
    found = {name: ingestion[name] for name in members if name in ingestion}
    return {"Arn": ingestion["arn"], "CreatedTime": ingestion["created"], **found}
