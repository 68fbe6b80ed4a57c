"""A fake of QuickSight's ingestions: runs the dataset's SQL on Trino and counts the rows."""

from __future__ import annotations

import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, Protocol

from cdc_lake_tests.aws_api.quicksight.objects import Objects, Record
from infra.local.aws_api.athena.result_columns import Column
from infra.local.aws_api.athena.statements import CATALOG
from infra.local.aws_api.athena.trino_engine import Outcome, Progress, QueryFailed

log = logging.getLogger(__name__)

_INTEGERS = ("tinyint", "smallint", "integer", "bigint")
_TRINO_TYPES = {
    "STRING": ("varchar", "char", "boolean", "json", "uuid"),
    "INTEGER": _INTEGERS,
    "DECIMAL": (*_INTEGERS, "decimal", "double", "real"),
    "DATETIME": ("date", "timestamp", "timestamp with time zone"),
}
"""The Trino types that QuickSight can read as each of its types."""


class Engine(Protocol):
    """Trino, or a fake."""

    def run(
        self, sql: str, *, catalog: str, schema: str | None, progress: Progress, stopped: Callable[[], bool]
    ) -> Outcome: ...


class Ingestions:
    """Runs ingestions one after another and records how they ended."""

    def __init__(self, objects: Objects, engine: Engine) -> None:
        self._objects, self._engine = objects, engine
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="ingestion")
        self.rows_dropped = 0
        """The number of rows that each ingestion from now on reports as dropped."""

    def start(self, data_set: Record, id: str) -> Record:
        """Queue an ingestion of a dataset. Raises ResourceExistsException if it has one with this id."""
        made = self._objects.add(
            "Ingestion",
            f"{data_set['id']}/ingestion/{id}",
            data_set=data_set["arn"],
            IngestionId=id,
            IngestionStatus="QUEUED",
        )
        [table] = data_set["PhysicalTableMap"].values()
        self._thread.submit(self._run, made, table["CustomSql"])
        return made

    def close(self) -> None:
        """Wait for the ingestions that are queued."""
        self._thread.shutdown()

    def _run(self, ingestion: Record, custom_sql: dict[str, Any]) -> None:
        try:
            ended = self._read(custom_sql)
        except QueryFailed as error:
            ended = _failed("DATA_SOURCE_CONNECTION_FAILED" if error.retryable else "SQL_EXCEPTION", str(error))
        except Exception as error:
            log.exception("Ingestion %s failed.", ingestion["arn"])
            ended = _failed("INTERNAL_SERVICE_ERROR", repr(error))
        with self._objects.lock:
            ingestion.update(ended)

    def _read(self, custom_sql: dict[str, Any]) -> Record:
        # Only a SELECT can be a subquery. QuickSight sets no default database.
        sql = f"SELECT * FROM (\n{custom_sql['SqlQuery']}\n) AS custom_sql"
        outcome = self._engine.run(sql, catalog=CATALOG, schema=None, progress=Progress(), stopped=lambda: False)
        if fault := _mismatch(custom_sql["Columns"], outcome.columns):
            return _failed("SQL_SCHEMA_MISMATCH_ERROR", fault)
        rows, dropped = sum(1 for _ in outcome.rows), self.rows_dropped
        counts = {"RowsIngested": rows - dropped, "RowsDropped": dropped, "TotalRowsInDataset": rows}
        return {"IngestionStatus": "COMPLETED", "RowInfo": counts}


def _failed(kind: str, message: str) -> Record:
    return {"IngestionStatus": "FAILED", "ErrorInfo": {"Type": kind, "Message": message}}


def _mismatch(declared: list[dict[str, str]], columns: list[Column]) -> str | None:
    """Return how the SQL's columns differ from those declared; further columns do not matter."""
    types = {each.name: str(each.signature["rawType"]) for each in columns}
    for each in declared:
        name, kind = each["Name"], each["Type"]
        if name not in types:
            return f"The SQL does not give the column {name}; it gives {', '.join(types)}."
        if types[name] not in _TRINO_TYPES[kind]:
            return f"Column {name} is declared as {kind}, and the SQL gives {types[name]}."
    return None
