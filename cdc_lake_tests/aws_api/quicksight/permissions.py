"""Who may do what with QuickSight's objects: kept as it was granted, for any principal, and refused to nobody.

Here: the operations that tell and change it, and what a principal looks like. Not here: users and groups.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from cdc_lake_tests.aws_api.quicksight.objects import Kind, Objects, invalid
from cdc_lake_tests.aws_api.rest_protocol import Operation

_KINDS: tuple[Kind, ...] = ("DataSource", "DataSet", "Analysis", "Dashboard")


def permissions(objects: Objects) -> dict[str, Operation]:
    """The operations, of each kind."""
    describe = {f"Describe{kind}Permissions": partial(_describe, objects, kind) for kind in _KINDS}
    return describe | {f"Update{kind}Permissions": partial(_update, objects, kind) for kind in _KINDS}


def check_principals(request: dict[str, Any]) -> None:
    """Raise InvalidParameterValueException for a principal of a request whose ARN is none of QuickSight's."""
    for member in ("Permissions", "GrantPermissions", "RevokePermissions"):
        for each in request.get(member, []):
            kind = each["Principal"].rpartition(":")[2].partition("/")[0]
            if not each["Principal"].startswith("arn:aws:quicksight:") or kind not in ("user", "group", "namespace"):
                raise invalid(f"Principal {each['Principal']} is no user's, group's or namespace's ARN.")


def _describe(objects: Objects, kind: Kind, request: dict[str, Any]) -> dict[str, Any]:
    found = objects.get(kind, request[f"{kind}Id"])
    return {f"{kind}Id": found["id"], f"{kind}Arn": found["arn"], "Permissions": found["permissions"]}


def _update(objects: Objects, kind: Kind, request: dict[str, Any]) -> dict[str, Any]:
    found = objects.get(kind, request[f"{kind}Id"])
    held = {each["Principal"]: set(each["Actions"]) for each in found["permissions"]}
    for each in request.get("GrantPermissions", []):
        held.setdefault(each["Principal"], set()).update(each["Actions"])
    for each in request.get("RevokePermissions", []):
        held.setdefault(each["Principal"], set()).difference_update(each["Actions"])
    found["permissions"] = [{"Principal": who, "Actions": sorted(may)} for who, may in held.items() if may]
    told = _describe(objects, kind, request)
    if kind in ("DataSource", "DataSet"):  # these don't tell what there is now
        del told["Permissions"]
    return told
