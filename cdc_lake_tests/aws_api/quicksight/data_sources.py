"""Data sources of the type ATHENA."""

from __future__ import annotations

import time
from typing import Any

from cdc_lake_tests.aws_api.quicksight.objects import Objects
from cdc_lake_tests.aws_api.rest_protocol import Operation
from infra.local.aws_api.athena.operations import WORKGROUP

Answer = dict[str, Any]


class DataSources:
    """Creates, describes and updates data sources. A change ends after it was described once."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.operations: dict[str, Operation] = {
            "CreateDataSource": self._create,
            "DescribeDataSource": self._describe,
            "UpdateDataSource": self._update,
        }

    def _create(self, request: dict[str, Any]) -> Answer:
        made = self._objects.add(
            "DataSource",
            request["DataSourceId"],
            type=request["Type"],
            permissions=request["Permissions"],
            name=request["Name"],
            parameters=request["DataSourceParameters"],
            status="CREATION_IN_PROGRESS",
        )
        return {"Arn": made["arn"], "DataSourceId": made["id"], "CreationStatus": made["status"]}

    def _update(self, request: dict[str, Any]) -> Answer:
        found = self._objects.get("DataSource", request["DataSourceId"])
        found.update(name=request["Name"], parameters=request["DataSourceParameters"])
        found.update(status="UPDATE_IN_PROGRESS", updated=time.time())
        return {"Arn": found["arn"], "DataSourceId": found["id"], "UpdateStatus": found["status"]}

    def _describe(self, request: dict[str, Any]) -> Answer:
        found = self._objects.get("DataSource", request["DataSourceId"])
        answer: Answer = {
            "Arn": found["arn"],
            "DataSourceId": found["id"],
            "Name": found["name"],
            "Type": found["type"],
            "Status": found["status"],
            "DataSourceParameters": found["parameters"],
        }
        workgroup = found["parameters"]["AthenaParameters"]["WorkGroup"]
        if found["status"].endswith("_FAILED"):
            answer["ErrorInfo"] = {"Type": "GENERIC_SQL_FAILURE", "Message": f"WorkGroup {workgroup} is not found."}
        ended = "SUCCESSFUL" if workgroup == WORKGROUP else "FAILED"
        found["status"] = found["status"].replace("IN_PROGRESS", ended)
        return {"DataSource": answer}
