"""Runs queries in threads and keeps their executions: id, state, times and the reason for a failure.

The states are QUEUED, RUNNING, SUCCEEDED, FAILED and CANCELLED. Only the newest executions of this process are kept
(AWS keeps executions for 45 days). Result objects on S3 are not deleted.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Lock
from uuid import uuid4

from boto3.exceptions import S3UploadFailedError
from botocore.exceptions import BotoCoreError, ClientError

from infra.local.aws_api.athena import table_properties
from infra.local.aws_api.athena.errors import invalid_request
from infra.local.aws_api.athena.result_columns import Column
from infra.local.aws_api.athena.result_files import ResultFiles, Row, S3Location
from infra.local.aws_api.athena.statements import CATALOG, Statement
from infra.local.aws_api.athena.trino_engine import OTHER, USER_ERROR, Progress, QueryFailed, QueryStopped, Trino
from infra.local.aws_api.errors import AwsError

CONCURRENT = 4
KEPT = 500
FINAL = frozenset({"SUCCEEDED", "FAILED", "CANCELLED"})


@dataclass
class Execution:
    """One query execution. Only its thread changes it, except for `stop_requested`."""

    id: str
    query: str
    statement: Statement
    database: str | None
    target: S3Location
    token: str | None
    """The caller's ClientRequestToken: the same token means the same execution."""
    reuse_seconds: float = 0.0
    """The maximum age of an earlier result of the same query that may be returned; 0: run the query."""
    reused: bool = False
    state: str = "QUEUED"
    submitted: float = field(default_factory=time.time)
    started: float | None = None
    completed: float | None = None
    failure: QueryFailed | None = None
    progress: Progress = field(default_factory=Progress)
    columns: list[Column] = field(default_factory=list)
    update_count: int | None = None
    stop_requested: bool = False

    @property
    def header(self) -> Row | None:
        """The row of column names that precedes the rows of a SELECT; None for other statements."""
        return [each.name for each in self.columns] if self.statement.has_header else None


class Executions:
    """The executions of this process, newest last."""

    def __init__(self, engine: Trino, results: ResultFiles) -> None:
        self._engine = engine
        self.results = results
        self._threads = ThreadPoolExecutor(CONCURRENT, thread_name_prefix="query")
        self._all: OrderedDict[str, Execution] = OrderedDict()
        self._codecs: dict[str, str] = {}
        """The codecs of tables that this process created, by `database.table`."""
        self._lock = Lock()

    def start(
        self,
        query: str,
        statement: Statement,
        *,
        database: str | None,
        output: S3Location,
        token: str | None,
        reuse_seconds: float = 0.0,
    ) -> Execution:
        """Queue a statement, or return the execution that an earlier call with the same token queued."""
        with self._lock:
            for known in reversed(self._all.values()):
                if token is not None and known.token == token:
                    return known
            execution_id = str(uuid4())
            target = _target(execution_id, statement, output)
            execution = Execution(execution_id, query, statement, database, target, token, reuse_seconds)
            self._all[execution.id] = execution
            self._drop_old()
        self._threads.submit(self._run, execution)
        return execution

    def get(self, execution_id: str) -> Execution:
        """Return the execution.

        Raises:
            AwsError: InvalidRequestException if there is no execution with that id.
        """
        with self._lock:
            if execution_id not in self._all:
                raise invalid_request(f"QueryExecution {execution_id} was not found")
            return self._all[execution_id]

    def stop(self, execution_id: str) -> None:
        """Stop an execution; one that has ended stays unchanged.

        Raises:
            AwsError: InvalidRequestException if there is no execution with that id.
        """
        self.get(execution_id).stop_requested = True

    def _drop_old(self) -> None:
        for old in list(self._all.values())[:-KEPT]:
            if old.state in FINAL:
                del self._all[old.id]
                self.results.delete(old.id)

    def _run(self, execution: Execution) -> None:
        state = "FAILED"
        try:
            self._execute(execution)
            state = "SUCCEEDED"
        except QueryStopped:
            state = "CANCELLED"
        except QueryFailed as failure:
            execution.failure = failure
        except AwsError as refused:
            execution.failure = QueryFailed(f"INVALID_TABLE_PROPERTY: {refused.message}", USER_ERROR)
        except (BotoCoreError, ClientError, S3UploadFailedError, OSError) as error:
            place = f"s3://{execution.target.bucket}/{execution.target.key}"
            execution.failure = QueryFailed(f"Cannot write the result to {place}: {error}", OTHER)
        finally:
            # Any other error must end the execution too: callers poll its state.
            if state == "FAILED" and execution.failure is None:
                execution.failure = QueryFailed(
                    "INTERNAL_ERROR: the cause is in the output of `cdc-lake logs aws`", OTHER
                )
            execution.completed = time.time()
            execution.state = state

    def _execute(self, execution: Execution) -> None:
        if execution.stop_requested:
            raise QueryStopped
        execution.started = time.time()
        execution.state = "RUNNING"
        if execution.reuse_seconds and self._reuse_result(execution):
            return
        sql, codec = self._translated(execution)
        outcome = self._engine.run(
            sql,
            catalog=CATALOG,
            schema=execution.database,
            codec=codec,
            progress=execution.progress,
            stopped=lambda: execution.stop_requested,
        )
        execution.columns = outcome.columns
        execution.update_count = outcome.update_count
        self.results.write(execution.id, outcome.columns, outcome.rows)
        if not execution.statement.writes_rows:
            self.results.publish(execution.id, execution.header, execution.target)

    def _translated(self, execution: Execution) -> tuple[str, str | None]:
        """Return a statement in Trino's SQL, and the codec with which it writes files; None for the default."""
        statement = execution.statement
        if not statement.writes_rows:
            return statement.sql, None
        translated = table_properties.translate(statement.sql)
        table = table_properties.target(translated.sql, execution.database) or ""
        with self._lock:
            if translated.codec is not None:
                self._codecs[table] = translated.codec
            elif statement.form == "CREATE_TABLE_AS_SELECT":
                self._codecs.pop(table, None)
            return translated.sql, self._codecs.get(table)

    def _reuse_result(self, execution: Execution) -> bool:
        """Reuse the newest result of the same SELECT that is recent enough; return whether there was one."""
        wanted = (execution.query, execution.database, "SELECT")
        with self._lock:
            for each in reversed(self._all.values()):
                found = (each.query, each.database, each.statement.form)
                ran = each.state == "SUCCEEDED" and not each.reused
                age = execution.submitted - (each.completed or 0)
                if ran and found == wanted and age <= execution.reuse_seconds:
                    self.results.share(each.id, execution.id)
                    execution.columns, execution.target, execution.reused = each.columns, each.target, True
                    return True
        return False


def _target(execution_id: str, statement: Statement, output: S3Location) -> S3Location:
    prefix = output.key if output.key.endswith("/") or not output.key else output.key + "/"
    if statement.form == "CREATE_TABLE_AS_SELECT":
        return S3Location(output.bucket, f"{prefix}tables/{execution_id}")
    suffix = {"SELECT": ".csv", "INSERT": ""}.get(statement.form, ".txt")
    return S3Location(output.bucket, f"{prefix}{execution_id}{suffix}")
