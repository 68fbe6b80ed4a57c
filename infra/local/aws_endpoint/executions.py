"""Query executions: their ids, their states and the threads they run in.

Here: QUEUED, RUNNING, then SUCCEEDED, FAILED or CANCELLED, with times and reasons, for the last executions
of this process. After a restart of the endpoint earlier executions are unknown (AWS keeps them 45 days);
what they wrote to S3 stays.
Not here: the API's shapes (athena.py), the engine (engine.py), the files (results.py).
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

from infra.local.aws_endpoint.columns import Column
from infra.local.aws_endpoint.engine import OTHER, Progress, QueryFailed, QueryStopped, Trino
from infra.local.aws_endpoint.errors import invalid_request
from infra.local.aws_endpoint.results import ResultStore, Row, S3Location
from infra.local.aws_endpoint.statements import CATALOG, Statement

CONCURRENT = 4
KEPT = 500
FINAL = frozenset({"SUCCEEDED", "FAILED", "CANCELLED"})


@dataclass
class Execution:
    """One query execution. Its thread is the only one to change it, but for `stop_requested`."""

    id: str
    query: str
    statement: Statement
    database: str | None
    workgroup: str
    target: S3Location
    parameters: list[str]
    token: str | None
    """The caller's ClientRequestToken: the same token is the same execution."""
    reuse_seconds: float = 0.0
    """How old an earlier execution of the same query may be whose result is taken; 0: none."""
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
        """The row of column names that comes before a SELECT's rows."""
        return [each.name for each in self.columns] if self.statement.has_header else None

    @property
    def engine_sql(self) -> str:
        """The statement for Trino, with the parameters bound as Athena does: as literals of SQL."""
        if not self.parameters:
            return self.statement.sql
        quoted = self.statement.sql.replace("'", "''")
        return f"EXECUTE IMMEDIATE '{quoted}' USING {', '.join(self.parameters)}"


class Executions:
    """The executions of this process, newest last."""

    def __init__(self, engine: Trino, store: ResultStore) -> None:
        self._engine = engine
        self.store = store
        self._threads = ThreadPoolExecutor(CONCURRENT, thread_name_prefix="query")
        self._all: OrderedDict[str, Execution] = OrderedDict()
        self._lock = Lock()

    def start(
        self,
        query: str,
        statement: Statement,
        *,
        database: str | None,
        workgroup: str,
        output: S3Location,
        parameters: list[str],
        token: str | None,
        reuse_seconds: float = 0.0,
    ) -> Execution:
        """Queue a statement; the execution of an earlier call with the same token, if there was one."""
        with self._lock:
            for known in reversed(self._all.values()):
                if token is not None and known.token == token:
                    return known
            execution_id = str(uuid4())
            target = _target(execution_id, statement, output)
            execution = Execution(
                execution_id, query, statement, database, workgroup, target, parameters, token, reuse_seconds
            )
            self._all[execution.id] = execution
            self._drop_old()
        self._threads.submit(self._run, execution)
        return execution

    def get(self, execution_id: str) -> Execution:
        """The execution.

        Raises:
            AwsError: InvalidRequestException, if there is none of that id.
        """
        with self._lock:
            if execution_id not in self._all:
                raise invalid_request(f"QueryExecution {execution_id} was not found")
            return self._all[execution_id]

    def newest_first(self, workgroup: str) -> list[Execution]:
        """All executions of a workgroup."""
        with self._lock:
            return [each for each in reversed(self._all.values()) if each.workgroup == workgroup]

    def stop(self, execution_id: str) -> None:
        """Ask for the end of an execution; one that has ended stays as it is.

        Raises:
            AwsError: InvalidRequestException, if there is none of that id.
        """
        self.get(execution_id).stop_requested = True

    def _drop_old(self) -> None:
        for old in list(self._all.values())[:-KEPT]:
            if old.state in FINAL:
                del self._all[old.id]
                self.store.forget(old.id)

    def _run(self, execution: Execution) -> None:
        state = "FAILED"
        try:
            self._execute(execution)
            state = "SUCCEEDED"
        except QueryStopped:
            state = "CANCELLED"
        except QueryFailed as failure:
            execution.failure = failure
        except (BotoCoreError, ClientError, S3UploadFailedError, OSError) as error:
            place = f"s3://{execution.target.bucket}/{execution.target.key}"
            execution.failure = QueryFailed(f"The result could not be written to {place}: {error}", OTHER)
        finally:
            # Whatever else may have happened, the caller's polling must come to an end.
            if state == "FAILED" and execution.failure is None:
                execution.failure = QueryFailed("INTERNAL_ERROR: see the log of the local AWS endpoint", OTHER)
            execution.completed = time.time()
            execution.state = state

    def _execute(self, execution: Execution) -> None:
        if execution.stop_requested:
            raise QueryStopped
        execution.started = time.time()
        execution.state = "RUNNING"
        if execution.reuse_seconds and self._take_former(execution):
            return
        outcome = self._engine.run(
            execution.engine_sql,
            catalog=CATALOG,
            schema=execution.database,
            progress=execution.progress,
            stopped=lambda: execution.stop_requested,
        )
        execution.columns = outcome.columns
        execution.update_count = outcome.update_count
        self.store.write(execution.id, outcome.columns, outcome.rows)
        if not execution.statement.writes_rows:
            self.store.publish(execution.id, execution.header, execution.target)

    def _take_former(self, execution: Execution) -> bool:
        """Give it the result of the newest execution of the same query that is young enough; whether there is one."""
        asked = (execution.query, execution.database, execution.parameters, "SELECT")
        with self._lock:
            for each in reversed(self._all.values()):
                told = (each.query, each.database, each.parameters, each.statement.form)
                ran = each.workgroup == execution.workgroup and each.state == "SUCCEEDED" and not each.reused
                if ran and told == asked and execution.submitted - (each.completed or 0) <= execution.reuse_seconds:
                    self.store.share(each.id, execution.id)
                    execution.columns, execution.target, execution.reused = each.columns, each.target, True
                    return True
        return False


def _target(execution_id: str, statement: Statement, output: S3Location) -> S3Location:
    prefix = output.key if output.key.endswith("/") or not output.key else output.key + "/"
    if statement.form == "CREATE_TABLE_AS_SELECT":
        return S3Location(output.bucket, f"{prefix}tables/{execution_id}")
    suffix = {"SELECT": ".csv", "INSERT": ""}.get(statement.form, ".txt")
    return S3Location(output.bucket, f"{prefix}{execution_id}{suffix}")
