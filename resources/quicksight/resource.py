"""QuickSight as a Dagster resource: creates, updates, refreshes and deletes the objects of a dashboard.

Each method describes the object first, and changes it only if the description differs from the request. QuickSight
adds members to definitions, so definitions cannot be compared. A fingerprint of the requested definition is stored
where a description returns it: in a dashboard's version description, and in the id of an analysis's sheet.

The QuickSight subscription, users and groups belong to the account.
"""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from botocore.exceptions import ClientError
from pydantic import Field

from resources.aws.aws_resource import AwsRequestFailed, AwsResource
from resources.aws.matching import matches
from resources.connect.connector_interface import PutOutcome
from resources.errors import ResourceError
from resources.quicksight import ingestions
from resources.quicksight.ingestions import Ingestion, LastIngestion
from resources.quicksight.objects import (
    ADVICE,
    ANALYSIS,
    DASHBOARD,
    DATA_SET,
    DATA_SOURCE,
    Api,
    Kind,
    QuickSightFailed,
    failed,
    grants,
)
from resources.quicksight.templates import DashboardTemplates

ImportMode = Literal["SPICE", "DIRECT_QUERY"]
SPICE: ImportMode = "SPICE"
_TYPE = "ATHENA"


@dataclass(frozen=True)
class Put:
    """The result of creating or updating an object, which is now as requested."""

    arn: str
    outcome: PutOutcome
    ingestion_id: str | None = None
    """For a created or updated data set in SPICE: the ingestion that QuickSight started."""
    version: int | None = None
    """For a dashboard: the published version."""


class QuickSight(AwsResource):
    """QuickSight in one account and region.

    Every method raises Unreachable, AccessRefused or AwsRequestFailed if a request fails, QuickSightFailed if a change
    fails after its request was accepted, and WaitTimedOut if a change takes longer than `change_seconds`.

    Usage:

        quicksight = QuickSight(region="eu-west-1", account_id="123456789012", principal="group/analysts")
        quicksight.refresh("orders")
    """

    account_id: str = Field(pattern=r"^\d{12}$")
    principal: str = Field(
        description="The owner of the created objects: an ARN, or `user/<name>` or `group/<name>` in the namespace."
    )
    namespace: str = "default"
    identity_region: str | None = Field(default=None, description="Region of users and groups; None: `region`.")
    id_prefix: str = Field(default="cdc-lake-", description="Prefix of all ids; infra/aws's policy allows no others.")
    workgroup: str = "primary"
    role_arn: str | None = Field(default=None, description="The role for queries; None: QuickSight's own role.")
    import_mode: ImportMode = SPICE
    poll_seconds: float = Field(default=2.0, gt=0)
    change_seconds: float = Field(default=300.0, gt=0, description="How long a change of an object may take.")
    ingestion_seconds: float = Field(default=3600.0, gt=0, description="How long an ingestion may take.")

    def check(self, templates: DashboardTemplates) -> None:
        """Raise ValueError, with file and field, for what QuickSight's service model does not allow; sends nothing."""
        templates.check_model(self._api().client.meta.service_model)

    def data_source(self) -> Put:
        """Create or update the data source: Athena in the workgroup, shared by all dashboards."""
        api, id_ = self._api(), f"{self.id_prefix}athena"
        role = {"RoleArn": self.role_arn} if self.role_arn else {}
        parameters = {"AthenaParameters": {"WorkGroup": self.workgroup, **role}}
        desired = {"Name": id_, "DataSourceParameters": parameters}
        actual = api.settled(DATA_SOURCE, id_)
        if actual is not None and actual["Type"] != _TYPE:
            raise QuickSightFailed(
                f"Cannot use data source {api.arn(DATA_SOURCE, id_)}: it has the type {actual['Type']} instead of"
                f" {_TYPE}, and QuickSight cannot change a type.",
                "Delete it if it is not used, or set another id_prefix.",
            )
        if actual is None:
            self._create(api, DATA_SOURCE, id_, **desired, Type=_TYPE)
            api.succeeded(DATA_SOURCE, id_)
        elif failed(actual) or not matches(desired, actual) or _role(actual) != self.role_arn:
            api.call("update_data_source", DATA_SOURCE, id_, **desired)
            api.succeeded(DATA_SOURCE, id_)
            return self._granted(api, DATA_SOURCE, id_, "updated")
        return self._granted(api, DATA_SOURCE, id_, "created" if actual is None else "unchanged")

    def data_set(self, templates: DashboardTemplates, data_source_arn: str) -> Put:
        """Create or update the data set of a dashboard, in the resource's import mode."""
        api, id_ = self._api(), self._id(templates.id)
        desired = {"ImportMode": self.import_mode, **templates.data_set_request(data_source_arn)}
        actual = api.settled(DATA_SET, id_)
        if actual is None:
            response = self._create(api, DATA_SET, id_, **desired)
            return self._granted(api, DATA_SET, id_, "created", ingestion_id=response.get("IngestionId"))
        if matches(desired, actual):
            return self._granted(api, DATA_SET, id_, "unchanged")
        response = api.call("update_data_set", DATA_SET, id_, **desired)
        return self._granted(api, DATA_SET, id_, "updated", ingestion_id=response.get("IngestionId"))

    def refresh(self, dashboard_id: str, ingestion_id: str | None = None) -> Ingestion:
        """Read the rows of a data set into SPICE again, and wait for the end.

        With `ingestion_id`, wait for that ingestion instead of starting one.

        Raises:
            IngestionFailed: it FAILED, was CANCELLED or dropped rows, with QuickSight's error type and message.
            WaitTimedOut: it takes longer than `ingestion_seconds`.
        """
        api, id_ = self._api(), self._id(dashboard_id)
        if ingestion_id is None:
            ingestion_id = str(uuid.uuid4())
            ingestions.start(api, id_, ingestion_id)
        return ingestions.completed(api, id_, ingestion_id, seconds=self.ingestion_seconds)

    def last_ingestion(self, dashboard_id: str) -> LastIngestion | None:
        """Return the newest ingestion of a data set, also one that another user started; None before the first."""
        return ingestions.last(self._api(), self._id(dashboard_id))

    def analysis(self, templates: DashboardTemplates, data_set_arn: str) -> Put:
        """Create or update the analysis. Manual changes in QuickSight stay until the template changes."""
        api, id_ = self._api(), self._id(templates.id)
        sheet = f"{id_}-{_fingerprint(templates, data_set_arn)[:16]}"
        desired = {"Name": templates.title, "Definition": templates.definition_of(data_set_arn, sheet)}
        actual = api.settled(ANALYSIS, id_)
        if actual is None:
            self._create(api, ANALYSIS, id_, **desired)
            api.succeeded(ANALYSIS, id_)
            return self._granted(api, ANALYSIS, id_, "created")
        current = any(each["SheetId"].startswith(sheet) for each in actual.get("Sheets", []))
        if actual["Name"] == templates.title and current and not failed(actual):
            return self._granted(api, ANALYSIS, id_, "unchanged")
        api.call("update_analysis", ANALYSIS, id_, **desired)
        api.succeeded(ANALYSIS, id_)
        return self._granted(api, ANALYSIS, id_, "updated")

    def dashboard(self, templates: DashboardTemplates, data_set_arn: str) -> Put:
        """Create or update the dashboard. An update creates a version, which is published after it has succeeded."""
        api, id_ = self._api(), self._id(templates.id)
        description = f"{self.id_prefix}{_fingerprint(templates, data_set_arn)}"
        desired = {
            "Name": templates.title,
            "Definition": templates.definition_of(data_set_arn, f"{id_}-sheet"),
            "VersionDescription": description,
        }
        actual = api.settled(DASHBOARD, id_)
        if actual is None:
            self._create(api, DASHBOARD, id_, **desired)
            created = api.succeeded(DASHBOARD, id_)
            return self._granted(api, DASHBOARD, id_, "created", version=created["Version"]["VersionNumber"])
        published = actual["Version"]
        current = actual["Name"] == templates.title and published.get("Description") == description
        if current and not failed(actual):
            return self._granted(api, DASHBOARD, id_, "unchanged", version=published["VersionNumber"])
        response = api.call("update_dashboard", DASHBOARD, id_, **desired)
        version = int(response["VersionArn"].rpartition("/")[2])
        api.succeeded(DASHBOARD, id_, VersionNumber=version)
        api.call("update_dashboard_published_version", DASHBOARD, id_, VersionNumber=version)
        return self._granted(api, DASHBOARD, id_, "updated", version=version)

    def delete(self, dashboard_id: str) -> Iterator[str]:
        """Delete the dashboard, its analysis and its data set; yield each that existed, with its ARN."""
        api, id_ = self._api(), self._id(dashboard_id)
        # Delete objects before the objects that they read. With recovery, an analysis would reserve its id for 30 days.
        without_recovery = {"ForceDeleteWithoutRecovery": True}
        for kind, parameters in ((DASHBOARD, {}), (ANALYSIS, without_recovery), (DATA_SET, {})):
            if api.delete(kind, id_, **parameters):
                yield f"{kind.words} {api.arn(kind, id_)}"

    def delete_data_source(self) -> Iterator[str]:
        """Delete the data source unless a data set with `id_prefix` exists, since it may read from the data source."""
        api, id_ = self._api(), f"{self.id_prefix}athena"
        with self.translate_errors(f"list the data sets of QuickSight's account {self.account_id}"):
            pages = api.client.get_paginator("list_data_sets").paginate(AwsAccountId=self.account_id)
            ids = [each["DataSetId"] for page in pages for each in page["DataSetSummaries"]]
        if not any(each.startswith(self.id_prefix) for each in ids) and api.delete(DATA_SOURCE, id_):
            yield f"{DATA_SOURCE.words} {api.arn(DATA_SOURCE, id_)}"

    def page(self, dashboard_id: str) -> str:
        """Return the dashboard's URL, for users who are signed in."""
        return f"https://{self.region}.quicksight.aws.amazon.com/sn/dashboards/{self._id(dashboard_id)}"

    @contextmanager
    def translate_errors(self, action: str) -> Iterator[None]:
        """Translate boto3's errors as AwsResource does; add the advice for QuickSight's error code."""
        try:
            with super().translate_errors(action):
                yield
        except ResourceError as error:
            if isinstance(error.__cause__, ClientError):
                error.hint = ADVICE.get(error.__cause__.response["Error"]["Code"], error.hint)
            raise

    def _id(self, dashboard_id: str) -> str:
        return f"{self.id_prefix}{dashboard_id}"

    def _owner(self) -> str:
        if self.principal.startswith("arn:"):
            return self.principal
        kind, _, name = self.principal.partition("/")
        return f"{self._arn_prefix(self.identity_region or self.region)}{kind}/{self.namespace}/{name}"

    def _arn_prefix(self, region: str) -> str:
        return f"arn:{self.session().get_partition_for_region(region)}:quicksight:{region}:{self.account_id}:"

    def _api(self) -> Api:
        prefix = self._arn_prefix(self.region)
        return Api(
            self.client("quicksight"),
            self.account_id,
            prefix,
            self.translate_errors,
            self.change_seconds,
            self.poll_seconds,
        )

    def _create(self, api: Api, kind: Kind, id_: str, **desired: object) -> dict[str, Any]:
        try:
            return api.call(f"create_{kind.method}", kind, id_, **desired, Permissions=grants(kind, self._owner()))
        except AwsRequestFailed as error:
            if error.code == "ResourceExistsException":
                # It did not exist when it was described a moment ago.
                error.hint = "Another run has just created it. Materialise the dashboard again."
            raise

    def _granted(
        self,
        api: Api,
        kind: Kind,
        id_: str,
        outcome: PutOutcome,
        ingestion_id: str | None = None,
        version: int | None = None,
    ) -> Put:
        """Grant the owner missing permissions; return the result of the put."""
        changed = outcome != "created" and api.grant(kind, id_, self._owner())
        return Put(api.arn(kind, id_), "updated" if changed else outcome, ingestion_id, version)


def _role(data_source: dict[str, Any]) -> str | None:
    role: str | None = data_source["DataSourceParameters"]["AthenaParameters"].get("RoleArn")
    return role


def _fingerprint(templates: DashboardTemplates, data_set_arn: str) -> str:
    """Return the SHA-256 of everything that an analysis or dashboard is created from."""
    content = [templates.title, templates.definition_of(data_set_arn, "")]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
