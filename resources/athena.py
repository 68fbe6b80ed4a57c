"""Athena as a Dagster resource: runs SQL statements and returns their rows."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from threading import Event, Lock
from typing import Any, Self

import dagster as dg
from botocore.exceptions import BotoCoreError, ClientError
from pyathena.connection import Connection
from pyathena.cursor import Cursor
from pyathena.error import DatabaseError
from pyathena.model import AthenaQueryExecution
from pyathena.util import RetryConfig
from pydantic import Field, PrivateAttr

from resources.aws.aws_resource import AwsRequestFailed, AwsResource
from resources.errors import ResourceError, WaitTimedOut

CATALOG = "AwsDataCatalog"
_METERING = Lock()
"""Threads share a resource, for example for the queries of a dashboard."""
_TB = 10**12
_LEAST_BILLED = 10**7
"""The minimum that Athena bills for a statement other than DDL, in bytes: https://aws.amazon.com/athena/pricing/."""

_ALLOW = "Allow the caller to read the table in Glue and its objects in S3, and to write to the bucket for results."
_ADVICE = (
    (
        "TABLE_NOT_FOUND",
        "Materialise the asset that writes the table, or add its database to the name (default: {database}).",
    ),
    (
        "SCHEMA_NOT_FOUND",
        "Choose a database that SHOW SCHEMAS lists; a table name without a database is looked up in {database}.",
    ),
    ("COLUMN_NOT_FOUND", "Choose a column that SHOW COLUMNS FROM the table lists."),
    ("SYNTAX_ERROR", "Correct the statement: Athena's SQL is Trino's."),
    ("mismatched input", "Correct the statement: Athena's SQL is Trino's."),
    ("utput location", "Set the resource's output_location to s3://BUCKET/PREFIX/."),
    ("output bucket", "Create the bucket of output_location, or choose another one. {hint}"),
    ("engine did not answer", "{hint}"),
    ("ccess denied", _ALLOW),
    ("ccess Denied", _ALLOW),
    ("not authorized", _ALLOW),
    ("nsufficient", _ALLOW),
)

# PyAthena logs a traceback for each error; the exceptions raised here contain more.
logging.getLogger("pyathena.common").setLevel(logging.CRITICAL)
logging.getLogger("pyathena.result_set").setLevel(logging.CRITICAL)


class _DeadlinePassed(Exception):  # noqa: N818 - not raised to callers
    """The query's timeout has passed."""


class _Stopped(Exception):  # noqa: N818 - not raised to callers
    """The program that runs the query is ending."""


class AthenaQueryFailed(ResourceError):  # noqa: N818 - named as all exceptions in resources/errors.py
    """Athena rejected a statement, or the statement failed or was cancelled."""

    def __init__(self, sql: str, query_id: str | None, reason: str, hint: str) -> None:
        lines = sql.strip().splitlines()
        first = lines[0] if len(lines) == 1 else f"{lines[0]} …" if lines else "(an empty statement)"
        self.query_id = query_id
        self.reason = reason
        query = f"query {query_id}" if query_id else "not started"
        super().__init__(f"Cannot run `{first}` on Athena ({query}): {reason.rstrip('. ')}.", hint)


@dataclass(frozen=True)
class QueryResult:
    """The result of a statement. Values are Decimal, date, datetime or str (also JSON and nested types)."""

    columns: tuple[tuple[str, str], ...]
    """Name and Athena type of each column; empty for statements without rows."""
    rows: tuple[tuple[Any, ...], ...]
    query_id: str
    """The id of Athena's query execution; empty if another engine ran the statement."""
    bytes_scanned: int
    seconds: float
    """From the submission to the last row."""
    reused: bool = False
    """Whether Athena returned the result of an earlier query without a scan."""


@dataclass
class Spent:
    """Totals over several statements: queries, scanned bytes, cost."""

    queries: int = 0
    bytes_scanned: int = 0
    usd: float | None = None
    """At the resource's price; None if the resource has no price."""


class Athena(AwsResource):
    """Athena in one workgroup and database.

    Every method raises Unreachable, AccessRefused, WaitTimedOut or AthenaQueryFailed.
    """

    database: str = "default"
    workgroup: str = "primary"
    output_location: str | None = Field(
        default=None, description="The s3:// prefix for results; None: the workgroup's."
    )
    query_timeout_seconds: float = Field(
        default=600.0, gt=0, description="A query that takes longer is stopped; Athena's own limit is 30 minutes."
    )
    poll_seconds: float = Field(default=0.25, gt=0)
    usd_per_tb: float | None = Field(
        default=None, ge=0, description="The price of scanning a TB; None: no cost is reported."
    )

    _spent: Spent = PrivateAttr(default_factory=Spent)
    _stopped: Event = PrivateAttr(default_factory=Event)

    def metered(self, database: str, stopped: Event | None = None) -> Self:
        """Return a copy of the resource for a pipeline's database, with its totals at zero.

        Once `stopped` is set, queries of the copy are cancelled at their next poll.
        """
        found = self.model_copy(update={"database": database})
        found._spent, found._stopped = Spent(), Event() if stopped is None else stopped
        return found

    @property
    def spent(self) -> Spent:
        """The totals of all completed statements; Athena does not bill failed ones."""
        return self._spent

    def query(self, sql: str, *, reuse_minutes: int = 0) -> QueryResult:
        """Run a statement and return all of its rows.

        With `reuse_minutes` (at most 10,080), Athena may return an earlier result of the same query that is not older
        than that. Such a result does not contain later commits, so the asset graph does not reuse results.
        """
        with self._ran(sql, reuse_minutes) as (cursor, started):
            rows = tuple(tuple(each) for each in cursor.fetchall()) if cursor.description else ()
            return self._result(cursor, rows, started)

    def execute(self, sql: str) -> QueryResult:
        """Run a statement that returns no rows, such as CREATE VIEW."""
        with self._ran(sql) as (cursor, started):
            return self._result(cursor, (), started)

    @contextmanager
    def _ran(self, sql: str, reuse_minutes: int = 0) -> Iterator[tuple[Cursor, float]]:
        started = time.monotonic()
        with self._connection(started + self.query_timeout_seconds) as connection:
            cursor = connection.cursor()
            with self._translate_query_errors(sql, cursor):
                cursor.execute(sql, result_reuse_enable=reuse_minutes > 0, result_reuse_minutes=reuse_minutes or None)
                yield cursor, started

    def _connection(self, deadline: float) -> Connection[Cursor]:
        with self.translate_errors(f"connect to {self._workgroup_name}"):
            return Connection(
                session=self.session(),
                region_name=self.region,
                endpoint_url=self.endpoint_url,
                config=self.client_config(),
                catalog_name=CATALOG,
                schema_name=self.database,
                work_group=self.workgroup,
                # With an empty string, PyAthena does not read the environment.
                s3_staging_dir=self.output_location or "",
                poll_interval=self.poll_seconds,
                retry_config=RetryConfig(attempt=1),  # botocore retries, by client_config
                on_poll=_bounded(deadline, self._stopped),
            )

    @contextmanager
    def _translate_query_errors(self, sql: str, cursor: Cursor) -> Iterator[None]:
        try:
            with self.translate_errors(f"run a query in {self._workgroup_name}"), _unwrapped():
                yield
        except AwsRequestFailed as error:
            hint = error.hint or self._advice(error.aws_message)
            raise AthenaQueryFailed(sql, cursor.query_id, f"{error.code}: {error.aws_message}", hint) from error
        except DatabaseError as error:
            raise AthenaQueryFailed(sql, cursor.query_id, str(error), self._advice(str(error))) from error
        except (_DeadlinePassed, _Stopped, dg.DagsterExecutionInterruptedError) as error:
            # Athena would continue the query and bill it. cancel() fails for a query that has just ended.
            with suppress(DatabaseError):
                cursor.cancel()
            if isinstance(error, dg.DagsterExecutionInterruptedError):
                raise
            if isinstance(error, _Stopped):
                raise AthenaQueryFailed(
                    sql, cursor.query_id, "it was cancelled, because the run that started it was interrupted", ""
                ) from error
            raise WaitTimedOut(
                f"Cannot complete Athena's query {cursor.query_id}: it was stopped because it took longer than"
                f" {self.query_timeout_seconds:g} s.",
                "Raise query_timeout_seconds, or make the query scan less data.",
            ) from error

    @property
    def _workgroup_name(self) -> str:
        return f"Athena's workgroup {self.workgroup}"

    def _advice(self, reason: str) -> str:
        for sign, advice in _ADVICE:
            if sign in reason:
                return advice.format(database=self.database, hint=self.hint).strip()
        return "Look up the query's id in Athena's history, which has the whole statement."

    def _result(self, cursor: Cursor, rows: tuple[tuple[Any, ...], ...], started: float) -> QueryResult:
        free = cursor.statement_type == "DDL" or bool(cursor.reused_previous_result)
        self._meter(cursor.data_scanned_in_bytes or 0, free=free)
        return QueryResult(
            columns=tuple((each[0], each[1]) for each in cursor.description or ()),
            rows=rows,
            query_id=cursor.query_id or "",
            bytes_scanned=cursor.data_scanned_in_bytes or 0,
            seconds=time.monotonic() - started,
            reused=bool(cursor.reused_previous_result),
        )

    def _meter(self, scanned: int, *, free: bool) -> None:
        with _METERING:
            self._spent.queries += 1
            self._spent.bytes_scanned += scanned
            if self.usd_per_tb is not None:
                billed = 0 if free else max(scanned, _LEAST_BILLED)
                self._spent.usd = (self._spent.usd or 0.0) + billed / _TB * self.usd_per_tb


@contextmanager
def _unwrapped() -> Iterator[None]:
    """Raise the botocore error that PyAthena wraps, since it contains AWS's message."""
    try:
        yield
    except DatabaseError as error:
        if isinstance(error.__cause__, ClientError | BotoCoreError):
            raise error.__cause__ from error
        raise


def _bounded(deadline: float, stopped: Event) -> Callable[[object], None]:
    """Return a function for PyAthena to call at each poll of a running query.

    It raises _DeadlinePassed after `deadline` (monotonic time), and _Stopped if `stopped` is set.
    """

    def check(execution: object) -> None:
        running = isinstance(execution, AthenaQueryExecution) and execution.completion_date_time is None
        if running and stopped.is_set():
            raise _Stopped
        if running and time.monotonic() > deadline:
            raise _DeadlinePassed

    return check
