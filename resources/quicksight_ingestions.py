"""Ingestions: QuickSight reads a dataset's rows into SPICE.

Here: beginning one, waiting for its end, and its failure in words. Not here: when one is due (the caller says).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from resources.errors import ResourceError
from resources.quicksight_calls import Calls
from resources.quicksight_kinds import DATA_SET
from resources.waiting import until

FINAL = frozenset({"COMPLETED", "FAILED", "CANCELLED"})
ROWS_DROPPED = "ROWS_DROPPED"
"""The kind that is ours: to QuickSight such an ingestion is COMPLETED."""
_ADVICE = {
    "SQL_EXCEPTION": "Run the dataset's SQL in Athena, correct it in the dashboard's YAML, then publish again.",
    "SQL_TABLE_NOT_FOUND": "Materialise the dataset that the SQL reads, then publish again.",
    "SQL_SCHEMA_MISMATCH_ERROR": "Make the columns in the dashboard's YAML those that the SQL gives.",
    "PERMISSION_DENIED": "Let the data source's role read the table, its objects and the workgroup.",
    ROWS_DROPPED: "Give the columns in the dashboard's YAML the types of the SQL's values, then publish again.",
    "ACCOUNT_CAPACITY_LIMIT_EXCEEDED": "Buy SPICE capacity, or set import_mode to DIRECT_QUERY.",
}


class IngestionFailed(ResourceError):  # noqa: N818 - it says what happened, as all of errors.py do
    """An ingestion FAILED or was CANCELLED, and readers see the rows of the one before; or it left rows out."""

    def __init__(self, data_set_arn: str, ingestion_id: str, state: str, kind: str, said: str) -> None:
        """Keep QuickSight's own error type beside the sentence."""
        self.kind = kind
        message = f"Ingestion {ingestion_id} of the data set {data_set_arn} is {state}: {kind}: {said.rstrip('. ')}."
        super().__init__(message, _ADVICE.get(kind, "QuickSight's page of the dataset has its history of refreshes."))


@dataclass(frozen=True)
class Ingestion:
    """One that is COMPLETED."""

    id: str
    arn: str
    rows_ingested: int
    bytes: int | None
    """What it takes in SPICE; None where that is not told."""
    seconds: float


@dataclass(frozen=True)
class Begun:
    """The newest ingestion of a dataset: `at` is in seconds since 1970, `faulty` that it has ended without all rows."""

    id: str
    at: float
    faulty: bool


def newest(calls: Calls, data_set: str) -> Begun | None:
    """The ingestion that was begun last, None where there was none; the first page of QuickSight's list has it."""
    listed = calls.call("list_ingestions", DATA_SET, data_set)["Ingestions"]
    if not listed:
        return None
    last = max(listed, key=lambda each: each["CreatedTime"])
    faulty = last["IngestionStatus"] in FINAL - {"COMPLETED"} or bool(last.get("RowInfo", {}).get("RowsDropped"))
    return Begun(last["IngestionId"], last["CreatedTime"].timestamp(), faulty)


def begin(calls: Calls, data_set: str, ingestion_id: str) -> None:
    """Begin a full refresh. Raises AwsRequestFailed, for one that the account's quota has no room for too."""
    calls.call("create_ingestion", DATA_SET, data_set, IngestionId=ingestion_id, IngestionType="FULL_REFRESH")


def completed(calls: Calls, data_set: str, ingestion_id: str, *, seconds: float) -> Ingestion:
    """The ingestion once it is through with all rows. Raises IngestionFailed, and WaitTimedOut after `seconds`."""
    arn = calls.arn(DATA_SET, data_set)

    def look() -> dict[str, Any]:
        answer = calls.call("describe_ingestion", DATA_SET, data_set, IngestionId=ingestion_id)
        return dict(answer["Ingestion"])

    found = until(
        look,
        lambda seen: seen["IngestionStatus"] in FINAL,
        seconds=seconds,
        what=f"ingestion {ingestion_id} of the data set {arn} to end",
        hint="It goes on in QuickSight; raise the resource's ingestion_seconds if it takes that long.",
        pause_seconds=calls.poll_seconds,
    )
    state, told, rows = found["IngestionStatus"], found.get("ErrorInfo", {}), found.get("RowInfo", {})
    if state != "COMPLETED":
        said = told.get("Message", "QuickSight does not say why")
        raise IngestionFailed(arn, ingestion_id, state, told.get("Type", "UNKNOWN"), said)
    if dropped := rows.get("RowsDropped", 0):
        said = f"SPICE took {rows.get('RowsIngested', 0)} rows and dropped {dropped}, so that sums are too low"
        raise IngestionFailed(arn, ingestion_id, state, ROWS_DROPPED, said)
    return Ingestion(
        id=ingestion_id,
        arn=found["Arn"],
        rows_ingested=rows.get("RowsIngested", 0),
        bytes=found.get("IngestionSizeInBytes"),
        seconds=float(found.get("IngestionTimeInSeconds", 0)),
    )
