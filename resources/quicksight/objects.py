"""QuickSight's API for its four kinds of objects: describe, create, update, delete, grant, and wait for a change."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

from resources.aws.aws_resource import AwsRequestFailed
from resources.errors import ResourceError
from resources.waiting import until

ADVICE: Mapping[str, str] = {
    "AccessDeniedException": "Allow the caller this action on the object, as infra/aws/stacks/quicksight.py"
    " does for ids that begin with cdc-lake-, and check that the account has a QuickSight subscription.",
    "ConflictException": "Another change of the object is in progress. Materialise the dashboard when it has ended.",
    "LimitExceededException": "QuickSight's quota for the object is used up. A data set can be refreshed 32 times in 24"
    " hours (8 times in the Standard edition): refresh it less often, or set import_mode to DIRECT_QUERY.",
    "UnsupportedUserEditionException": "Dashboards by definition require QuickSight's Enterprise edition.",
}


class QuickSightFailed(ResourceError):  # noqa: N818 - named like the exceptions in resources/errors.py
    """QuickSight could not create or change an object, for the reasons in the message."""


@dataclass(frozen=True)
class Kind:
    """A kind of object: its names in QuickSight's API, and the actions of an owner."""

    member: str
    """Its name in requests and responses."""
    more_actions: tuple[str, ...]
    """An owner's actions other than describing, updating, deleting and sharing the object."""

    @property
    def words(self) -> str:
        """Its name in a sentence: `data source`."""
        return re.sub(r"(?<=[a-z])(?=[A-Z])", " ", self.member).lower()

    @property
    def method(self) -> str:
        """Its name in boto3's methods: `data_source`."""
        return self.words.replace(" ", "_")

    @property
    def path(self) -> str:
        """Its name in ARNs: `datasource`."""
        return self.member.lower()

    @property
    def id(self) -> str:
        """The name of the request parameter for its id: `DataSourceId`."""
        return f"{self.member}Id"

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions that QuickSight's console grants to an owner.

        https://docs.aws.amazon.com/quicksight/latest/APIReference/API_ResourcePermission.html
        """
        own = [f"{verb}{self.member}" for verb in ("Describe", "Update", "Delete")]
        shared = [f"{verb}{self.member}Permissions" for verb in ("Describe", "Update")]
        return tuple(f"quicksight:{each}" for each in sorted((*own, *shared, *self.more_actions)))


_INGESTIONS = ("CancelIngestion", "CreateIngestion", "DescribeIngestion", "ListIngestions")
DATA_SOURCE = Kind("DataSource", ("PassDataSource",))
DATA_SET = Kind("DataSet", ("PassDataSet", *_INGESTIONS))
ANALYSIS = Kind("Analysis", ("QueryAnalysis", "RestoreAnalysis"))
DASHBOARD = Kind("Dashboard", ("ListDashboardVersions", "QueryDashboard", "UpdateDashboardPublishedVersion"))


@dataclass(frozen=True)
class Api:
    """The API in one account. `translate_errors` is that of the resource."""

    client: Any  # boto3's stubs for QuickSight are not a dependency
    account_id: str
    arn_prefix: str
    """`arn:aws:quicksight:<region>:<account>:`."""
    translate_errors: Callable[[str], AbstractContextManager[None]]
    seconds: float
    """How long a change may take."""
    poll_seconds: float

    def arn(self, kind: Kind, id: str) -> str:
        """Return the object's ARN, whether or not it exists."""
        return f"{self.arn_prefix}{kind.path}/{id}"

    def call(self, method: str, kind: Kind, id: str, **parameters: object) -> dict[str, Any]:
        """Call a method for an object. Raises AccessRefused, Unreachable or AwsRequestFailed, each with the ARN."""
        with self.translate_errors(f"call QuickSight's {method} for the {kind.words} {self.arn(kind, id)}"):
            response = getattr(self.client, method)(AwsAccountId=self.account_id, **{kind.id: id}, **parameters)
        return dict(response)

    def describe(self, kind: Kind, id: str, **parameters: object) -> dict[str, Any] | None:
        """Return the object's description, None if it does not exist."""
        try:
            return dict(self.call(f"describe_{kind.method}", kind, id, **parameters)[kind.member])
        except AwsRequestFailed as error:
            if error.code == "ResourceNotFoundException":
                return None
            raise

    def settled(self, kind: Kind, id: str, **parameters: object) -> dict[str, Any] | None:
        """Wait until no change is in progress; return the description, None if the object does not exist.

        Raises WaitTimedOut, and QuickSightFailed for a deleted analysis that still occupies its id.
        """
        actual = self._wait(kind, id, **parameters)
        if actual is not None and status(actual) == "DELETED":
            raise QuickSightFailed(
                f"Cannot use {kind.words} {self.arn(kind, id)}: it was deleted, and its id is reserved while it can be"
                " restored.",
                f"Restore it with `aws quicksight restore-analysis --analysis-id {id} --aws-account-id "
                f"{self.account_id}`, or delete it with `aws quicksight delete-analysis "
                "--force-delete-without-recovery` and the same ids.",
            )
        return actual

    def succeeded(self, kind: Kind, id: str, **parameters: object) -> dict[str, Any]:
        """Wait until a change has ended; return the description. Raises WaitTimedOut and QuickSightFailed."""
        actual = self.settled(kind, id, **parameters)
        arn = self.arn(kind, id)
        if actual is None:
            raise QuickSightFailed(
                f"Cannot change {kind.words} {arn}: it was deleted during the change.",
                "Materialise the dashboard again.",
            )
        if failed(actual):
            raise QuickSightFailed(
                f"Cannot change {kind.words} {arn}: its status is {status(actual)} ({_reasons(actual)}).",
                "Correct the template or the data source's permissions, then materialise the dashboard again.",
            )
        return actual

    def delete(self, kind: Kind, id: str, **parameters: object) -> bool:
        """Delete the object when no change is in progress; return whether it existed."""
        if self._wait(kind, id) is None:
            return False
        try:
            self.call(f"delete_{kind.method}", kind, id, **parameters)
        except AwsRequestFailed as error:
            if error.code == "ResourceNotFoundException":  # deleted meanwhile
                return False
            raise
        return True

    def grant(self, kind: Kind, id: str, principal: str) -> bool:
        """Grant the principal an owner's actions; return whether some were missing."""
        permissions = self.call(f"describe_{kind.method}_permissions", kind, id)["Permissions"]
        granted = {action for each in permissions if each["Principal"] == principal for action in each["Actions"]}
        if granted.issuperset(kind.actions):
            return False
        self.call(f"update_{kind.method}_permissions", kind, id, GrantPermissions=grants(kind, principal))
        return True

    def _wait(self, kind: Kind, id: str, **parameters: object) -> dict[str, Any] | None:
        return until(
            lambda: self.describe(kind, id, **parameters),
            lambda actual: actual is None or not status(actual).endswith("_IN_PROGRESS"),
            seconds=self.seconds,
            what=f"the change of the {kind.words} {self.arn(kind, id)} to end",
            state=lambda actual: actual and status(actual),
            pause_seconds=self.poll_seconds,
        )


def grants(kind: Kind, principal: str) -> list[dict[str, Any]]:
    """Return an owner's permissions in the format of requests."""
    return [{"Principal": principal, "Actions": list(kind.actions)}]


def status(actual: Mapping[str, Any]) -> str:
    """Return the status of a described object; empty for a data set, which has no status."""
    return str(actual.get("Status") or actual.get("Version", {}).get("Status", ""))


def failed(actual: Mapping[str, Any]) -> bool:
    """Return whether the last change failed."""
    return status(actual).endswith("_FAILED")


def _reasons(actual: Mapping[str, Any]) -> str:
    errors = [*actual.get("Errors", []), *actual.get("Version", {}).get("Errors", [])]
    errors += [actual["ErrorInfo"]] if "ErrorInfo" in actual else []
    reasons = [f"{each.get('Type', 'UNKNOWN')}: {each.get('Message', '').rstrip('. ')}" for each in errors]
    return "; ".join(reasons) or "QuickSight gives no reason"
