"""QuickSight, as a Dagster resource: what a dashboard takes there is made, kept as wanted, and refreshed.

Here: data source, dataset, analysis and dashboard, each described first: without a difference nothing is called that
changes anything. Not here: the calls (quicksight_calls.py), the structures (quicksight_data.py,
quicksight_definition.py), ingestions (quicksight_ingestions.py), the subscription, users and groups (the account's).

A definition comes back from AWS with members of its own, so it can't be compared. A fingerprint of what was asked for
stands where a description tells it: in a dashboard's version description, and in the id of an analysis's sheet.
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

from resources import quicksight_data, quicksight_ingestions
from resources.aws import AwsRequestFailed, AwsResource
from resources.comparing import same
from resources.connectors import PutOutcome
from resources.errors import ResourceError
from resources.quicksight_calls import ADVICE, Calls, QuickSightFailed, failed, grants
from resources.quicksight_definition import definition
from resources.quicksight_ingestions import Begun, Ingestion
from resources.quicksight_kinds import ANALYSIS, DASHBOARD, DATA_SET, DATA_SOURCE, Kind
from resources.quicksight_visuals import Board, RowSet

ImportMode = Literal["SPICE", "DIRECT_QUERY"]
SPICE: ImportMode = "SPICE"
_TYPE = "ATHENA"


@dataclass(frozen=True)
class Put:
    """An object that is as wanted now, and what that took."""

    arn: str
    outcome: PutOutcome
    ingestion_id: str | None = None
    """Of a dataset in SPICE that was created or updated: the ingestion that QuickSight began by itself."""
    version: int | None = None
    """Of a dashboard: the version that readers see."""


class QuickSight(AwsResource):
    """QuickSight in one account and region.

    Every method raises Unreachable, AccessRefused or AwsRequestFailed if QuickSight does not comply, QuickSightFailed
    where it could not make what it took, and WaitTimedOut where that takes longer than `change_seconds`.
    """

    account_id: str = Field(pattern=r"^\d{12}$")
    principal: str = Field(
        description="Who owns what is made: an ARN, or `user/<name>` or `group/<name>` of the namespace."
    )
    namespace: str = "default"
    identity_region: str | None = Field(default=None, description="Where users and groups are kept; None: `region`.")
    id_prefix: str = Field(default="cdc-lake-", description="Begins all ids: the policy in infra/aws allows no others.")
    workgroup: str = "primary"
    role_arn: str | None = Field(default=None, description="What queries run as; None: QuickSight's own role.")
    import_mode: ImportMode = SPICE
    poll_seconds: float = Field(default=2.0, gt=0)
    change_seconds: float = Field(default=300.0, gt=0, description="How long making or changing an object may take.")
    ingestion_seconds: float = Field(default=3600.0, gt=0, description="How long an ingestion may take.")

    def data_source(self) -> Put:
        """Put the data source: Athena in the workgroup, one for all dashboards."""
        calls, id_ = self._calls(), f"{self.id_prefix}athena"
        role = {"RoleArn": self.role_arn} if self.role_arn else {}
        parameters = {"AthenaParameters": {"WorkGroup": self.workgroup, **role}}
        wanted = {"Name": id_, "DataSourceParameters": parameters}
        found = calls.settled(DATA_SOURCE, id_)
        if found is not None and found["Type"] != _TYPE:
            raise QuickSightFailed(
                f"The data source {calls.arn(DATA_SOURCE, id_)} exists, with the type {found['Type']}, and a type can't"
                " be changed.",
                f"Delete it if nothing needs it, or give the resource another id_prefix: {_TYPE} is wanted.",
            )
        if found is None:
            self._create(calls, DATA_SOURCE, id_, **wanted, Type=_TYPE)
            calls.through(DATA_SOURCE, id_)
        elif failed(found) or not same(wanted, found) or _role(found) != self.role_arn:
            calls.call("update_data_source", DATA_SOURCE, id_, **wanted)
            calls.through(DATA_SOURCE, id_)
            return self._shared(calls, DATA_SOURCE, id_, "updated")
        return self._shared(calls, DATA_SOURCE, id_, "created" if found is None else "unchanged")

    def data_set(self, board_id: str, title: str, rows: RowSet, data_source_arn: str) -> Put:
        """Put the dataset of a dashboard: its SQL and computed columns, in the resource's import mode."""
        calls, id_ = self._calls(), self._id(board_id)
        wanted = {"Name": title, "ImportMode": self.import_mode, **quicksight_data.tables(rows, data_source_arn)}
        found = calls.settled(DATA_SET, id_)
        if found is None:
            answer = self._create(calls, DATA_SET, id_, **wanted)
            return self._shared(calls, DATA_SET, id_, "created", ingestion_id=answer.get("IngestionId"))
        if same(wanted, found):
            return self._shared(calls, DATA_SET, id_, "unchanged")
        answer = calls.call("update_data_set", DATA_SET, id_, **wanted)
        return self._shared(calls, DATA_SET, id_, "updated", ingestion_id=answer.get("IngestionId"))

    def refresh(self, board_id: str, ingestion_id: str | None = None) -> Ingestion:
        """Have the rows of a dataset in SPICE read again, and wait for the end of it.

        With `ingestion_id` none is begun, and that one is waited for.

        Raises:
            IngestionFailed: it FAILED or was CANCELLED, with QuickSight's error type and message.
            WaitTimedOut: it takes longer than `ingestion_seconds`.
        """
        calls, id_ = self._calls(), self._id(board_id)
        if ingestion_id is None:
            ingestion_id = str(uuid.uuid4())
            quicksight_ingestions.begin(calls, id_, ingestion_id)
        return quicksight_ingestions.completed(calls, id_, ingestion_id, seconds=self.ingestion_seconds)

    def last_ingestion(self, board_id: str) -> Begun | None:
        """Return the ingestion of a dataset that was begun last, by whomever; None where there was none."""
        return quicksight_ingestions.newest(self._calls(), self._id(board_id))

    def analysis(self, board: Board, data_set_arn: str) -> Put:
        """Put the analysis. What people change in it by hand stays until the board changes."""
        calls, id_ = self._calls(), self._id(board.id)
        sheet = f"{id_}-{_fingerprint(board, data_set_arn)[:16]}"
        wanted = {"Name": board.title, "Definition": definition(board, data_set_arn, sheet)}
        found = calls.settled(ANALYSIS, id_)
        if found is None:
            self._create(calls, ANALYSIS, id_, **wanted)
            calls.through(ANALYSIS, id_)
            return self._shared(calls, ANALYSIS, id_, "created")
        sheets = [each["SheetId"] for each in found.get("Sheets", [])]
        if found["Name"] == board.title and sheet in sheets and not failed(found):
            return self._shared(calls, ANALYSIS, id_, "unchanged")
        calls.call("update_analysis", ANALYSIS, id_, **wanted)
        calls.through(ANALYSIS, id_)
        return self._shared(calls, ANALYSIS, id_, "updated")

    def dashboard(self, board: Board, data_set_arn: str) -> Put:
        """Put the dashboard; a change of it is a new version, which is published once it was made."""
        calls, id_ = self._calls(), self._id(board.id)
        made_of = f"{self.id_prefix}{_fingerprint(board, data_set_arn)}"
        wanted = {
            "Name": board.title,
            "Definition": definition(board, data_set_arn, f"{id_}-sheet"),
            "VersionDescription": made_of,
        }
        found = calls.settled(DASHBOARD, id_)
        if found is None:
            self._create(calls, DASHBOARD, id_, **wanted)
            made = calls.through(DASHBOARD, id_)
            return self._shared(calls, DASHBOARD, id_, "created", version=made["Version"]["VersionNumber"])
        now = found["Version"]
        if found["Name"] == board.title and now.get("Description") == made_of and not failed(found):
            return self._shared(calls, DASHBOARD, id_, "unchanged", version=now["VersionNumber"])
        answer = calls.call("update_dashboard", DASHBOARD, id_, **wanted)
        version = int(answer["VersionArn"].rpartition("/")[2])
        calls.through(DASHBOARD, id_, VersionNumber=version)
        calls.call("update_dashboard_published_version", DASHBOARD, id_, VersionNumber=version)
        return self._shared(calls, DASHBOARD, id_, "updated", version=version)

    def delete(self, board_id: str) -> Iterator[str]:
        """Delete a board's dashboard, analysis and dataset; yields each that was there, with its ARN."""
        calls, id_ = self._calls(), self._id(board_id)
        # What reads goes before what is read. An analysis in the bin would hold its id for weeks.
        forced = {"ForceDeleteWithoutRecovery": True}
        for kind, parameters in ((DASHBOARD, {}), (ANALYSIS, forced), (DATA_SET, {})):
            if calls.delete(kind, id_, **parameters):
                yield f"{kind.words} {calls.arn(kind, id_)}"

    def delete_data_source(self) -> Iterator[str]:
        """Delete the data source, unless a dataset is there whose id begins as ours do: it may read from it."""
        calls, id_ = self._calls(), f"{self.id_prefix}athena"
        with self.explained(f"Listing the data sets of QuickSight's account {self.account_id}"):
            pages = calls.client.get_paginator("list_data_sets").paginate(AwsAccountId=self.account_id)
            ids = [each["DataSetId"] for page in pages for each in page["DataSetSummaries"]]
        if not any(each.startswith(self.id_prefix) for each in ids) and calls.delete(DATA_SOURCE, id_):
            yield f"{DATA_SOURCE.words} {calls.arn(DATA_SOURCE, id_)}"

    def page(self, board_id: str) -> str:
        """The dashboard's address, for people who are signed in."""
        return f"https://{self.region}.quicksight.aws.amazon.com/sn/dashboards/{self._id(board_id)}"

    @contextmanager
    def explained(self, action: str) -> Iterator[None]:
        """See AwsResource: here each error also says what QuickSight asks for."""
        try:
            with super().explained(action):
                yield
        except ResourceError as error:
            if isinstance(error.__cause__, ClientError):
                error.hint = ADVICE.get(error.__cause__.response["Error"]["Code"], error.hint)
            raise

    def _id(self, board_id: str) -> str:
        return f"{self.id_prefix}{board_id}"

    def _owner(self) -> str:
        if self.principal.startswith("arn:"):
            return self.principal
        kind, _, name = self.principal.partition("/")
        return f"{self._arn_prefix(self.identity_region or self.region)}{kind}/{self.namespace}/{name}"

    def _arn_prefix(self, region: str) -> str:
        return f"arn:{self.session().get_partition_for_region(region)}:quicksight:{region}:{self.account_id}:"

    def _calls(self) -> Calls:
        prefix = self._arn_prefix(self.region)
        return Calls(
            self.client("quicksight"), self.account_id, prefix, self.explained, self.change_seconds, self.poll_seconds
        )

    def _create(self, calls: Calls, kind: Kind, id_: str, **wanted: object) -> dict[str, Any]:
        try:
            return calls.call(f"create_{kind.method}", kind, id_, **wanted, Permissions=grants(kind, self._owner()))
        except AwsRequestFailed as error:
            if error.code == "ResourceExistsException":
                # Described as missing a moment ago: another run was quicker, or QuickSight shows nobody what it is.
                error.hint = "Another run has just made it: materialise again, which then compares it."
            raise

    def _shared(
        self,
        calls: Calls,
        kind: Kind,
        id_: str,
        outcome: PutOutcome,
        ingestion_id: str | None = None,
        version: int | None = None,
    ) -> Put:
        """The outcome, once the owner may do what an owner may."""
        shared = outcome != "created" and calls.share(kind, id_, self._owner())
        return Put(
            calls.arn(kind, id_), "updated" if shared and outcome == "unchanged" else outcome, ingestion_id, version
        )


def _role(data_source: dict[str, Any]) -> str | None:
    told: str | None = data_source["DataSourceParameters"]["AthenaParameters"].get("RoleArn")
    return told


def _fingerprint(board: Board, data_set_arn: str) -> str:
    """SHA-256, in hexadecimal, of all that makes an analysis or dashboard."""
    made_of = [board.title, definition(board, data_set_arn, "")]
    return hashlib.sha256(json.dumps(made_of, sort_keys=True).encode()).hexdigest()
