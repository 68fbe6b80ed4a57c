"""QuickSight's API, the same way for each kind of object: describe, create, update, share, and wait for the end of it.

Here: calls, states, and what each of AWS's errors asks for. Not here: what is put (quicksight.py), ingestions
(quicksight_ingestions.py).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from resources.aws import AwsRequestFailed
from resources.errors import ResourceError
from resources.quicksight_kinds import ANALYSIS, Kind
from resources.waiting import until

_UNDER_WAY = "_IN_PROGRESS"
_FAILED = "_FAILED"
ADVICE: Mapping[str, str] = {
    "AccessDeniedException": "Allow the caller that action on it, as the policy in infra/aws/quicksight.py does for ids"
    " that begin with cdc-lake-; and see that the account is subscribed to QuickSight.",
    "ConflictException": "Something else is changing it: materialise again when that is through.",
    "LimitExceededException": "QuickSight's quota for it is used up. Of a dataset it takes 32 refreshes in 24 hours"
    " (8 on the Standard edition): refresh it less often, or set import_mode to DIRECT_QUERY.",
    "UnsupportedUserEditionException": "Dashboards by definition take QuickSight's Enterprise edition.",
}


class QuickSightFailed(ResourceError):  # noqa: N818 - it says what happened, as all of errors.py do
    """QuickSight could not make or change an object; with its own reasons."""


@dataclass(frozen=True)
class Calls:
    """Calls for the objects of one account. What AWS refuses is raised as `explained` words it."""

    client: Any  # its stubs are not among the dependencies
    account_id: str
    arn_prefix: str
    """`arn:aws:quicksight:<region>:<account>:`."""
    explained: Callable[[str], AbstractContextManager[None]]
    seconds: float
    """How long a change may take."""
    poll_seconds: float

    def arn(self, kind: Kind, id: str) -> str:
        """The object's ARN, whether it is there or not."""
        return f"{self.arn_prefix}{kind.path}/{id}"

    def call(self, method: str, kind: Kind, id: str, **parameters: object) -> dict[str, Any]:
        """Make a call for an object. Raises AccessRefused, Unreachable or AwsRequestFailed, each with the ARN."""
        with self.explained(f"QuickSight's {method} for the {kind.words} {self.arn(kind, id)}"):
            found = getattr(self.client, method)(AwsAccountId=self.account_id, **{kind.id: id}, **parameters)
        return dict(found)

    def find(self, kind: Kind, id: str, **parameters: object) -> dict[str, Any] | None:
        """The object as it is described, None where there is none."""
        try:
            return dict(self.call(f"describe_{kind.method}", kind, id, **parameters)[kind.member])
        except AwsRequestFailed as error:
            if error.code == "ResourceNotFoundException":
                return None
            raise

    def settled(self, kind: Kind, id: str, **parameters: object) -> dict[str, Any] | None:
        """The object once nothing is under way at it, whether that went well or not; None where there is none.

        Raises WaitTimedOut, and QuickSightFailed for an analysis that was deleted and still holds its id.
        """
        arn, found = self.arn(kind, id), self._still(kind, id, **parameters)
        if found is not None and status(found) == "DELETED":
            undelete = f"`aws quicksight restore-analysis --analysis-id {id}`" if kind is ANALYSIS else "its recovery"
            raise QuickSightFailed(
                f"The {kind.words} {arn} was deleted, and keeps its id while it can be recovered.",
                f"Bring it back with {undelete}, or delete it without recovery.",
            )
        return found

    def through(self, kind: Kind, id: str, **parameters: object) -> dict[str, Any]:
        """The object once a change of it went well. Raises QuickSightFailed with the reasons, and WaitTimedOut."""
        found = self.settled(kind, id, **parameters)
        arn = self.arn(kind, id)
        if found is None:
            raise QuickSightFailed(f"The {kind.words} {arn} is gone.", "Somebody deleted it meanwhile: publish again.")
        if failed(found):
            raise QuickSightFailed(
                f"The {kind.words} {arn} is {status(found)}: {_reasons(found)}.",
                "Mend what it names (in the dashboard's YAML, or what the data source may read), then publish again.",
            )
        return found

    def delete(self, kind: Kind, id: str, **parameters: object) -> bool:
        """Delete the object once nothing is under way at it; return whether there was one."""
        if self._still(kind, id) is None:
            return False
        try:
            self.call(f"delete_{kind.method}", kind, id, **parameters)
        except AwsRequestFailed as error:
            if error.code == "ResourceNotFoundException":  # it went meanwhile
                return False
            raise
        return True

    def share(self, kind: Kind, id: str, principal: str) -> bool:
        """See that the principal may do what an owner may; return whether that took a change."""
        told = self.call(f"describe_{kind.method}_permissions", kind, id)
        held = {act for each in told["Permissions"] if each["Principal"] == principal for act in each["Actions"]}
        if held.issuperset(kind.actions):
            return False
        self.call(f"update_{kind.method}_permissions", kind, id, GrantPermissions=grants(kind, principal))
        return True

    def _still(self, kind: Kind, id: str, **parameters: object) -> dict[str, Any] | None:
        return until(
            lambda: self.find(kind, id, **parameters),
            lambda seen: seen is None or not status(seen).endswith(_UNDER_WAY),
            seconds=self.seconds,
            what=f"what is under way at the {kind.words} {self.arn(kind, id)} to end",
            pause_seconds=self.poll_seconds,
        )


def grants(kind: Kind, principal: str) -> list[dict[str, Any]]:
    """An owner's permissions, as calls take them."""
    return [{"Principal": principal, "Actions": list(kind.actions)}]


def status(found: Mapping[str, Any]) -> str:
    """The state of what was described; empty for a dataset, which has none."""
    return str(found.get("Status") or found.get("Version", {}).get("Status", ""))


def failed(found: Mapping[str, Any]) -> bool:
    """Whether the last change of it failed."""
    return status(found).endswith(_FAILED)


def _reasons(found: Mapping[str, Any]) -> str:
    errors = [*found.get("Errors", []), *found.get("Version", {}).get("Errors", [])]
    errors += [found["ErrorInfo"]] if "ErrorInfo" in found else []
    told = [f"{each.get('Type', 'UNKNOWN')}: {each.get('Message', '').rstrip('. ')}" for each in errors]
    return "; ".join(told) or "QuickSight does not say why"
