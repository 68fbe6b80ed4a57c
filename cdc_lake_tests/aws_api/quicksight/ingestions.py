"""Ingestions: a dataset's SQL is run by the engine, one after the other, and its rows are counted.

Here: QUEUED, RUNNING, then COMPLETED or FAILED with QuickSight's error type. One that was under way when the endpoint
ended is FAILED afterwards. The rows are not kept: SPICE is not here, and nothing shows a dashboard. Not here: the
operations (quicksight.py).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from cdc_lake_tests.aws_api.quicksight.data_sets import custom_sql, mismatch
from cdc_lake_tests.aws_api.quicksight.objects import Objects, Record
from infra.local.aws_api.athena.statements import CATALOG
from infra.local.aws_api.athena.trino_engine import Outcome, Progress, QueryFailed

log = logging.getLogger(__name__)

KEPT = 100
"""How many ingestions of a dataset are remembered, beside those under way."""
_UNDER_WAY = ("QUEUED", "RUNNING")


class Engine(Protocol):
    """What runs SQL: Trino."""

    def run(
        self, sql: str, *, catalog: str, schema: str | None, progress: Progress, stopped: Callable[[], bool]
    ) -> Outcome: ...


class _FaultyError(Exception):
    """An ingestion can't go on; QuickSight's type of the error, and its message."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class Ingestions:
    """Runs ingestions and keeps how they went in their records."""

    def __init__(self, objects: Objects, engine: Engine) -> None:
        self._objects, self._engine = objects, engine
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ingestion")
        with objects.lock:
            for left in objects.of("Ingestion"):
                if left["IngestionStatus"] in _UNDER_WAY:
                    _end(left, "INTERNAL_SERVICE_ERROR", "The local AWS endpoint was ended while it ran.")
            objects.save()

    def begin(self, data_set: Record, id: str, request: str) -> Record:
        """Queue one, and forget the oldest. Raises ResourceExistsException where the dataset has one of that id."""
        made = self._objects.add(
            "Ingestion",
            f"{data_set['id']}/ingestion/{id}",
            data_set=data_set["arn"],
            IngestionId=id,
            IngestionStatus="QUEUED",
            RequestSource="MANUAL",
            RequestType=request,
        )
        self._drop_old(data_set)
        self._thread.submit(self._run, made["arn"])
        return made

    def _drop_old(self, data_set: Record) -> None:
        known = [each for each in self._objects.of("Ingestion") if each["data_set"] == data_set["arn"]]
        for old in known[:-KEPT]:
            if old["IngestionStatus"] not in _UNDER_WAY:
                self._objects.remove(old)

    def close(self) -> None:
        """Wait for what is queued; none can be begun afterwards."""
        self._thread.shutdown()

    def _run(self, arn: str) -> None:
        fault: tuple[str, str] | None = ("INTERNAL_SERVICE_ERROR", "See the log of the local AWS endpoint.")
        rows = 0
        started = time.monotonic()
        try:
            rows = self._read(self._started(arn))
            fault = None
        except _FaultyError as error:
            fault = error.kind, str(error)
        except QueryFailed as error:
            fault = "DATA_SOURCE_CONNECTION_FAILED" if error.retryable else "SQL_EXCEPTION", str(error)
        finally:
            # Whatever else may have happened, the caller's polling must come to an end.
            with self._objects.lock:
                found = self._objects.at(arn)
                if found is not None:  # its dataset may have been deleted meanwhile
                    found["IngestionTimeInSeconds"] = round(time.monotonic() - started)
                    _end(found, *fault) if fault else _complete(found, rows)
                    self._objects.save()

    def _started(self, arn: str) -> Record:
        """The dataset of an ingestion that runs from now on, as it is now."""
        with self._objects.lock:
            found = self._objects.at(arn)
            data_set = self._objects.at(found["data_set"]) if found else None
            if found is None or data_set is None:
                raise _FaultyError("DATA_SET_DELETED", "The data set was deleted.")
            if data_set["ImportMode"] != "SPICE":
                raise _FaultyError("DATA_SET_NOT_SPICE", f"The data set {data_set['arn']} is not in SPICE.")
            if self._objects.at(custom_sql(data_set)["DataSourceArn"]) is None:
                raise _FaultyError("DATA_SOURCE_NOT_FOUND", "The data source was deleted.")
            found["IngestionStatus"] = "RUNNING"
            self._objects.save()
            return dict(data_set)

    def _read(self, data_set: Record) -> int:
        # As a subquery nothing but a SELECT can be run. There is no default database, as in QuickSight.
        sql = f"SELECT * FROM (\n{custom_sql(data_set)['SqlQuery']}\n) AS custom_sql"
        outcome = self._engine.run(sql, catalog=CATALOG, schema=None, progress=Progress(), stopped=lambda: False)
        if wrong := mismatch(data_set, outcome.columns):
            raise _FaultyError("SQL_SCHEMA_MISMATCH_ERROR", f"{wrong[0].upper()}{wrong[1:]}.")
        return sum(1 for _ in outcome.rows)


def _complete(record: Record, rows: int) -> None:
    record["IngestionStatus"] = "COMPLETED"
    record["RowInfo"] = {"RowsIngested": rows, "RowsDropped": 0, "TotalRowsInDataset": rows}


def _end(record: Record, kind: str, message: str) -> None:
    record["IngestionStatus"] = "FAILED"
    record["ErrorInfo"] = {"Type": kind, "Message": message}


def described(record: Record) -> dict[str, Any]:
    """An ingestion as the API tells it."""
    names = ("IngestionId", "IngestionStatus", "RequestSource", "RequestType", "ErrorInfo", "RowInfo")
    told = {name: record[name] for name in (*names, "IngestionTimeInSeconds") if name in record}
    return {"Arn": record["arn"], "CreatedTime": record["created"], **told}
