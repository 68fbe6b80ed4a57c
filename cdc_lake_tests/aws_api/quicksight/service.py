"""QuickSight's API: one operation per kind of object and verb."""

from __future__ import annotations

from functools import partial
from typing import Any

from cdc_lake_tests.aws_api.quicksight.boards import Boards
from cdc_lake_tests.aws_api.quicksight.data_sets import DataSets
from cdc_lake_tests.aws_api.quicksight.data_sources import DataSources
from cdc_lake_tests.aws_api.quicksight.ingestions import Ingestions
from cdc_lake_tests.aws_api.quicksight.objects import Kind, Objects, Record
from cdc_lake_tests.aws_api.rest_protocol import Operation, RestService

_KINDS: tuple[Kind, ...] = ("DataSource", "DataSet", "Analysis", "Dashboard")

Answer = dict[str, Any]


def quicksight_operations(objects: Objects, ingestions: Ingestions) -> dict[str, Operation]:
    """Return the operations by name."""
    operations: dict[str, Operation] = {
        **DataSources(objects).operations,
        **DataSets(objects, ingestions).operations,
        **Boards(objects, "Analysis").operations,
        **Boards(objects, "Dashboard").operations,
    }
    for kind in _KINDS:
        operations[f"Delete{kind}"] = partial(_delete, objects, kind)
        operations[f"Describe{kind}Permissions"] = partial(_describe_permissions, objects, kind)
        operations[f"Update{kind}Permissions"] = partial(_update_permissions, objects, kind)
    return {name: partial(_locked, objects, operation) for name, operation in operations.items()}


def quicksight_service(operations: dict[str, Operation]) -> RestService:
    """Return the QuickSight service."""
    return RestService("quicksight", operations, invalid="InvalidParameterValueException")


def _locked(objects: Objects, operation: Operation, request: dict[str, Any]) -> Answer:
    with objects.lock:
        return operation(request)


def _delete(objects: Objects, kind: Kind, request: dict[str, Any]) -> Answer:
    found = objects.get(kind, request[f"{kind}Id"])
    objects.remove(found)
    return {"Arn": found["arn"], f"{kind}Id": found["id"]}


def _describe_permissions(objects: Objects, kind: Kind, request: dict[str, Any]) -> Answer:
    return _permissions(objects.get(kind, request[f"{kind}Id"]))


def _update_permissions(objects: Objects, kind: Kind, request: dict[str, Any]) -> Answer:
    found = objects.get(kind, request[f"{kind}Id"])
    granted = {each["Principal"]: set(each["Actions"]) for each in found["permissions"]}
    for each in request["GrantPermissions"]:
        granted.setdefault(each["Principal"], set()).update(each["Actions"])
    found["permissions"] = [{"Principal": name, "Actions": sorted(actions)} for name, actions in granted.items()]
    return _permissions(found)


def _permissions(record: Record) -> Answer:
    kind = record["kind"]
    return {f"{kind}Id": record["id"], f"{kind}Arn": record["arn"], "Permissions": record["permissions"]}
