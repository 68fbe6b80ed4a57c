"""Analyses and dashboards by Definition. A change ends after it was described once."""

from __future__ import annotations

import time
from typing import Any, Literal

from cdc_lake_tests.aws_api.quicksight.definitions import errors
from cdc_lake_tests.aws_api.quicksight.objects import Objects, Record
from cdc_lake_tests.aws_api.rest_protocol import Operation
from infra.local.aws_api.errors import AwsError

Answer = dict[str, Any]


class Boards:
    """Creates, describes and updates analyses, or dashboards, which have versions of which one is published."""

    def __init__(self, objects: Objects, kind: Literal["Analysis", "Dashboard"]) -> None:
        self._objects, self._kind = objects, kind
        self.operations: dict[str, Operation] = {
            f"Create{kind}": self._create,
            f"Describe{kind}": self._describe_analysis if kind == "Analysis" else self._describe_dashboard,
            f"Update{kind}": self._update,
        }
        if kind == "Dashboard":
            self.operations["UpdateDashboardPublishedVersion"] = self._publish

    def _create(self, request: dict[str, Any]) -> Answer:
        made = self._objects.add(
            self._kind,
            request[f"{self._kind}Id"],
            permissions=request["Permissions"],
            name=request["Name"],
            versions=[_version("CREATION", request)],
            published=1,
        )
        return {**self._ids(made), "CreationStatus": made["versions"][0]["status"]}

    def _update(self, request: dict[str, Any]) -> Answer:
        found = self._board(request)
        found.update(name=request["Name"], updated=time.time())
        if self._kind == "Analysis":
            found["versions"] = [_version("UPDATE", request)]
        else:
            found["versions"].append(_version("CREATION", request))
        return self._ids(found)

    def _describe_analysis(self, request: dict[str, Any]) -> Answer:
        found = self._board(request)
        [version] = found["versions"]
        return {"Analysis": {**self._ids(found), "Name": found["name"], **self._state(version)}}

    def _describe_dashboard(self, request: dict[str, Any]) -> Answer:
        found = self._board(request)
        number: int = request.get("VersionNumber") or found["published"]
        version = found["versions"][number - 1]
        described = {"VersionNumber": number, "Description": version["description"], **self._state(version)}
        return {"Dashboard": {**self._ids(found), "Name": found["name"], "Version": described}}

    def _publish(self, request: dict[str, Any]) -> Answer:
        found = self._board(request)
        version = found["versions"][request["VersionNumber"] - 1]
        if not version["status"].endswith("_SUCCESSFUL"):
            raise AwsError("ConflictException", f"The version is {version['status']}.", status=409)
        found["published"] = request["VersionNumber"]
        return {"DashboardId": found["id"], "DashboardArn": found["arn"]}

    def _board(self, request: dict[str, Any]) -> Record:
        return self._objects.get(self._kind, request[f"{self._kind}Id"])

    def _ids(self, board: Record) -> Answer:
        newest = f"{board['arn']}/version/{len(board['versions'])}"
        return {"Arn": board["arn"], f"{self._kind}Id": board["id"], "VersionArn": newest}

    def _state(self, version: Record) -> Answer:
        """Return the members that describe a version's state, then end a change in progress."""
        sheets = [{"SheetId": each["SheetId"]} for each in version["definition"]["Sheets"]]
        described = {"Status": version["status"], "Errors": version["errors"], "Sheets": sheets}
        if version["status"].endswith("_IN_PROGRESS"):
            version["errors"] = errors(self._objects, version["definition"])
            ended = "FAILED" if version["errors"] else "SUCCESSFUL"
            version["status"] = version["status"].replace("IN_PROGRESS", ended)
        return described


def _version(change: Literal["CREATION", "UPDATE"], request: dict[str, Any]) -> Record:
    status = {"status": f"{change}_IN_PROGRESS", "errors": []}
    return {"definition": request["Definition"], "description": request.get("VersionDescription", ""), **status}
