"""Analyses and dashboards by Definition: their states, versions, and what is told of them.

Here: the operations of both. A change is in progress when it is answered, and through (or FAILED) at the next look. Not
here: datasets (quicksight.py), what is wrong with a definition (quicksight_definitions.py).
"""

from __future__ import annotations

import time
from typing import Any

from cdc_lake_tests.aws_api.quicksight.definitions import faults
from cdc_lake_tests.aws_api.quicksight.objects import Kind, Objects, Record, invalid
from cdc_lake_tests.aws_api.rest_protocol import Operation
from infra.local.aws_api.errors import AwsError

Answer = dict[str, Any]
_RECOVERABLE_DAYS = 30


class Boards:
    """The operations of analyses and dashboards."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.operations: dict[str, Operation] = {
            "CreateAnalysis": self._create_analysis,
            "DescribeAnalysis": self._describe_analysis,
            "DescribeAnalysisDefinition": self._analysis_definition,
            "UpdateAnalysis": self._update_analysis,
            "DeleteAnalysis": self._delete_analysis,
            "RestoreAnalysis": self._restore_analysis,
            "CreateDashboard": self._create_dashboard,
            "DescribeDashboard": self._describe_dashboard,
            "DescribeDashboardDefinition": self._dashboard_definition,
            "UpdateDashboard": self._update_dashboard,
            "UpdateDashboardPublishedVersion": self._publish,
            "ListDashboardVersions": self._list_versions,
            "DeleteDashboard": self._delete_dashboard,
        }

    def _create_analysis(self, request: dict[str, Any]) -> Answer:
        made = self._objects.add(
            "Analysis",
            request["AnalysisId"],
            name=request["Name"],
            permissions=request.get("Permissions", []),
            **_begun("CREATION", request),
        )
        return {"Arn": made["arn"], "AnalysisId": made["id"], "CreationStatus": made["status"]}

    def _update_analysis(self, request: dict[str, Any]) -> Answer:
        found = self._analysis(request)
        _refuse_busy("Analysis", found["arn"], found["status"])
        found.update(name=request["Name"], updated=time.time(), **_begun("UPDATE", request))
        return {"Arn": found["arn"], "AnalysisId": found["id"], "UpdateStatus": found["status"]}

    def _describe_analysis(self, request: dict[str, Any]) -> Answer:
        found = self._objects.get("Analysis", request["AnalysisId"])
        answer = {"AnalysisId": found["id"], "Arn": found["arn"], "Name": found["name"], **_told(found)}
        answer |= {"CreatedTime": found["created"], "LastUpdatedTime": found["updated"]}
        self._look(found)
        return {"Analysis": answer}

    def _analysis_definition(self, request: dict[str, Any]) -> Answer:
        found = self._objects.get("Analysis", request["AnalysisId"])
        self._look(found)
        errors = {"Errors": found["errors"]} if found["errors"] else {}
        told = {"AnalysisId": found["id"], "Name": found["name"], "ResourceStatus": found["status"], **errors}
        return {**told, "Definition": found["definition"]}

    def _delete_analysis(self, request: dict[str, Any]) -> Answer:
        found = self._objects.get("Analysis", request["AnalysisId"])
        if request.get("ForceDeleteWithoutRecovery"):
            self._objects.remove(found)
            return {"Arn": found["arn"], "AnalysisId": found["id"]}
        found["status"] = "DELETED"
        days = request.get("RecoveryWindowInDays", _RECOVERABLE_DAYS)
        return {"Arn": found["arn"], "AnalysisId": found["id"], "DeletionTime": time.time() + days * 86400}

    def _restore_analysis(self, request: dict[str, Any]) -> Answer:
        found = self._objects.get("Analysis", request["AnalysisId"])
        if found["status"] != "DELETED":
            raise invalid(f"{found['arn']} is not deleted.")
        found["status"] = "CREATION_SUCCESSFUL"
        return {"Arn": found["arn"], "AnalysisId": found["id"]}

    def _analysis(self, request: dict[str, Any]) -> Record:
        found = self._objects.get("Analysis", request["AnalysisId"])
        if found["status"] == "DELETED":
            raise AwsError("ConflictException", f"{found['arn']} is deleted.", status=409)
        return found

    def _create_dashboard(self, request: dict[str, Any]) -> Answer:
        made = self._objects.add(
            "Dashboard",
            request["DashboardId"],
            name=request["Name"],
            permissions=request.get("Permissions", []),
            versions=[_version(1, request)],
            published=1,
        )
        return self._changed(made, made["versions"][0])

    def _update_dashboard(self, request: dict[str, Any]) -> Answer:
        found = self._objects.get("Dashboard", request["DashboardId"])
        _refuse_busy("Dashboard", found["arn"], found["versions"][-1]["status"])
        found["versions"].append(_version(len(found["versions"]) + 1, request))
        found.update(name=request["Name"], updated=time.time())
        return self._changed(found, found["versions"][-1])

    def _changed(self, dashboard: Record, version: Record) -> Answer:
        told = {"Arn": dashboard["arn"], "VersionArn": f"{dashboard['arn']}/version/{version['number']}"}
        return {**told, "DashboardId": dashboard["id"], "CreationStatus": version["status"]}

    def _describe_dashboard(self, request: dict[str, Any]) -> Answer:
        found = self._objects.get("Dashboard", request["DashboardId"])
        version = _of(found, request.get("VersionNumber"))
        told: Answer = {
            "VersionNumber": version["number"],
            "Arn": f"{found['arn']}/version/{version['number']}",
            "CreatedTime": version["created"],
            **({"Description": version["description"]} if version["description"] else {}),
            **_told(version),
        }
        self._look(version)
        times = {"CreatedTime": found["created"], "LastUpdatedTime": found["updated"]}
        times["LastPublishedTime"] = found.get("published_at", found["created"])
        named = {"DashboardId": found["id"], "Arn": found["arn"], "Name": found["name"]}
        return {"Dashboard": {**named, "Version": told, **times}}

    def _dashboard_definition(self, request: dict[str, Any]) -> Answer:
        found = self._objects.get("Dashboard", request["DashboardId"])
        version = _of(found, request.get("VersionNumber"))
        self._look(version)
        errors = {"Errors": version["errors"]} if version["errors"] else {}
        told = {"DashboardId": found["id"], "Name": found["name"], "ResourceStatus": version["status"], **errors}
        return {**told, "Definition": version["definition"]}

    def _publish(self, request: dict[str, Any]) -> Answer:
        found = self._objects.get("Dashboard", request["DashboardId"])
        version = _of(found, request["VersionNumber"])
        if not version["status"].endswith("_SUCCESSFUL"):
            raise invalid(f"Version {version['number']} of {found['arn']} is {version['status']}.")
        found.update(published=version["number"], published_at=time.time())
        return {"DashboardId": found["id"], "DashboardArn": found["arn"]}

    def _list_versions(self, request: dict[str, Any]) -> Answer:
        found = self._objects.get("Dashboard", request["DashboardId"])
        told = []
        for each in found["versions"]:
            arn = f"{found['arn']}/version/{each['number']}"
            told.append({"Arn": arn, "VersionNumber": each["number"], "Status": each["status"]})
        return {"DashboardVersionSummaryList": told}

    def _delete_dashboard(self, request: dict[str, Any]) -> Answer:
        found = self._objects.get("Dashboard", request["DashboardId"])
        self._objects.remove(found)
        return {"Arn": found["arn"], "DashboardId": found["id"]}

    def _look(self, board: Record) -> None:
        """Bring a change that is in progress to its end: what was told of it before this was the state until now."""
        if board["status"].endswith("_IN_PROGRESS"):
            board["errors"] = faults(self._objects, board["definition"])
            ending = "FAILED" if board["errors"] else "SUCCESSFUL"
            board["status"] = board["status"].replace("IN_PROGRESS", ending)


def _begun(change: str, request: dict[str, Any]) -> Record:
    if "Definition" not in request:
        raise invalid("The local QuickSight makes analyses and dashboards by Definition.")
    return {"status": f"{change}_IN_PROGRESS", "errors": [], "definition": request["Definition"]}


def _version(number: int, request: dict[str, Any]) -> Record:
    described = {"number": number, "description": request.get("VersionDescription"), "created": time.time()}
    return {**described, **_begun("CREATION", request)}


def _of(dashboard: Record, number: int | None) -> Record:
    """The version of that number; without one the published one."""
    wanted = dashboard["published"] if number is None else number
    versions: list[Record] = dashboard["versions"]
    for each in versions:
        if each["number"] == wanted:
            return each
    message = f"Version {wanted} of {dashboard['arn']} is not found."
    raise AwsError("ResourceNotFoundException", message, status=404, ResourceType="DASHBOARD")


def _told(board: Record) -> Answer:
    definition = board["definition"]
    return {
        "Status": board["status"],
        **({"Errors": board["errors"]} if board["errors"] else {}),
        "DataSetArns": [each["DataSetArn"] for each in definition["DataSetIdentifierDeclarations"]],
        "Sheets": [{"SheetId": each["SheetId"], "Name": each.get("Name", "")} for each in definition.get("Sheets", [])],
    }


def _refuse_busy(kind: Kind, arn: str, status: str) -> None:
    if status.endswith("_IN_PROGRESS"):
        raise AwsError("ConflictException", f"{kind} {arn} is {status}.", status=409)
