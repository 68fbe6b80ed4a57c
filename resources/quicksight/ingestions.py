"""Starts ingestions, which read a data set's rows into SPICE, and waits for their end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from resources.errors import ResourceError
from resources.quicksight.objects import DATA_SET, Api
from resources.waiting import until

FINAL = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
ROWS_DROPPED = "ROWS_DROPPED"
"""This module's error type for an ingestion that is COMPLETED although it dropped rows."""
_ADVICE = {
    "SQL_EXCEPTION": "Run the data set's SQL in Athena, correct it in the dashboard's YAML, then materialise the"
    " dashboard again.",
    "SQL_TABLE_NOT_FOUND": "Materialise the dataset that the SQL reads, then materialise the dashboard again.",
    "SQL_SCHEMA_MISMATCH_ERROR": "Change the columns in the data set's template to those that the SQL returns.",
    "PERMISSION_DENIED": "Allow the data source's role to read the table, its objects and the workgroup.",
    ROWS_DROPPED: "Change the columns' types in the data set's template to those of the SQL's values, then materialise"
    " the dashboard again.",
    "ACCOUNT_CAPACITY_LIMIT_EXCEEDED": "Buy SPICE capacity, or set import_mode to DIRECT_QUERY.",
}


class IngestionFailed(ResourceError):  # noqa: N818 - named like the exceptions in resources/errors.py
    """An ingestion FAILED, was CANCELLED or dropped rows. In the first two cases, readers see the previous rows."""

    def __init__(self, data_set_arn: str, ingestion_id: str, state: str, kind: str, message: str) -> None:
        """`kind` is QuickSight's error type."""
        self.kind = kind
        super().__init__(
            f"Cannot refresh the data set {data_set_arn}: ingestion {ingestion_id} is {state}: {kind}:"
            f" {message.rstrip('. ')}.",
            _ADVICE.get(kind, "See the history of refreshes on the data set's page in QuickSight."),
        )


@dataclass(frozen=True)
class Ingestion:
    """A completed ingestion."""

    id: str
    arn: str
    rows_ingested: int
    bytes: int | None
    """Its size in SPICE; None if QuickSight does not report it."""
    seconds: float


@dataclass(frozen=True)
class LastIngestion:
    """The newest ingestion of a data set."""

    id: str
    created_at: float
    """Seconds since 1970."""
    faulty: bool
    """Whether it ended without all rows."""


def last(api: Api, data_set: str) -> LastIngestion | None:
    """Return the newest ingestion, None before the first one. QuickSight lists the newest on the first page."""
    ingestions = api.call("list_ingestions", DATA_SET, data_set)["Ingestions"]
    if not ingestions:
        return None
    newest = max(ingestions, key=lambda each: each["CreatedTime"])
    faulty = newest["IngestionStatus"] in FINAL - {"COMPLETED"} or bool(newest.get("RowInfo", {}).get("RowsDropped"))
    return LastIngestion(newest["IngestionId"], newest["CreatedTime"].timestamp(), faulty)


def start(api: Api, data_set: str, ingestion_id: str) -> None:
    """Start a full refresh. Raises AwsRequestFailed, for example if the account's quota is used up."""
    api.call("create_ingestion", DATA_SET, data_set, IngestionId=ingestion_id, IngestionType="FULL_REFRESH")


def completed(api: Api, data_set: str, ingestion_id: str, *, seconds: float) -> Ingestion:
    """Wait until the ingestion has read all rows. Raises IngestionFailed, and WaitTimedOut after `seconds`."""
    arn = api.arn(DATA_SET, data_set)

    def describe() -> dict[str, Any]:
        return dict(api.call("describe_ingestion", DATA_SET, data_set, IngestionId=ingestion_id)["Ingestion"])

    ingestion = until(
        describe,
        lambda actual: actual["IngestionStatus"] in FINAL,
        seconds=seconds,
        what=f"ingestion {ingestion_id} of the data set {arn} to end",
        state=lambda actual: actual["IngestionStatus"],
        hint="It continues in QuickSight; raise the resource's ingestion_seconds if it needs this long.",
        pause_seconds=api.poll_seconds,
    )
    state, error, rows = ingestion["IngestionStatus"], ingestion.get("ErrorInfo", {}), ingestion.get("RowInfo", {})
    if state != "COMPLETED":
        message = error.get("Message", "QuickSight gives no reason")
        raise IngestionFailed(arn, ingestion_id, state, error.get("Type", "UNKNOWN"), message)
    if dropped := rows.get("RowsDropped", 0):
        message = f"SPICE ingested {rows.get('RowsIngested', 0)} rows and dropped {dropped}, so sums are too low"
        raise IngestionFailed(arn, ingestion_id, state, ROWS_DROPPED, message)
    return Ingestion(
        id=ingestion_id,
        arn=ingestion["Arn"],
        rows_ingested=rows.get("RowsIngested", 0),
        bytes=ingestion.get("IngestionSizeInBytes"),
        seconds=float(ingestion.get("IngestionTimeInSeconds", 0)),
    )
