"""Athena's API: the operations that running a query takes, in the shapes that botocore's model has.

Here: StartQueryExecution, GetQueryExecution, GetQueryResults, StopQueryExecution, ListQueryExecutions and
the one workgroup, `primary`. Everything else is refused.

What differs from Athena, since Trino answers:

- DDL is Trino's: CREATE TABLE AS, CREATE [OR REPLACE] VIEW, CREATE SCHEMA, DROP. Hive's CREATE EXTERNAL
  TABLE, MSCK REPAIR and ALTER TABLE are not there; tables are made by CTAS or through the Glue API.
- CREATE TABLE AS takes `format`, `external_location`, `partitioned_by`, `bucketed_by` and `bucket_count` as
  Athena does; `write_compression`, `table_type` and `is_external` are unknown to it. Without
  `external_location` the data goes below the database's location, not below the output location, and is
  removed when the table is dropped (Athena leaves it).
- A syntax error makes the execution FAIL; Athena often refuses to start it.
- SHOW and DESCRIBE answer with Trino's columns. Results are reused as long as this process lives. Nothing is encrypted.
"""

from __future__ import annotations

import json
from typing import Any

import moto.athena.urls
from moto.core.common_types import TYPE_RESPONSE
from moto.core.responses import BaseResponse

from infra.local.aws_endpoint.errors import AwsError, invalid_request, unknown_operation
from infra.local.aws_endpoint.executions import Execution, Executions
from infra.local.aws_endpoint.results import S3Location
from infra.local.aws_endpoint.statements import CATALOG, classify

WORKGROUP = "primary"
PAGE_ROWS = 1000
PAGE_EXECUTIONS = 50
MOST_REUSE_MINUTES = 10080

Answer = dict[str, Any]


class AthenaApi:
    """The offered operations: parameters in, members of the answer out."""

    def __init__(self, executions: Executions) -> None:
        self._executions = executions
        self.operations = {
            "StartQueryExecution": self._start,
            "GetQueryExecution": self._get,
            "GetQueryResults": self._results,
            "StopQueryExecution": self._stop,
            "ListQueryExecutions": self._list,
            "GetWorkGroup": self._workgroup,
            "ListWorkGroups": self._workgroups,
        }

    def _start(self, request: dict[str, Any]) -> Answer:
        context = request.get("QueryExecutionContext") or {}
        catalog = context.get("Catalog", CATALOG)
        if catalog.lower() != CATALOG:
            raise invalid_request(f"Catalog '{catalog}' does not exist; there is AwsDataCatalog.")
        workgroup = _known_workgroup(request)
        uri = (request.get("ResultConfiguration") or {}).get("OutputLocation")
        if not uri:
            raise invalid_request("No output location provided: ResultConfiguration.OutputLocation is needed.")
        output = S3Location.parse(uri)
        self._executions.store.check_bucket(output)
        query = request["QueryString"]
        execution = self._executions.start(
            query,
            classify(query),
            database=context.get("Database"),
            workgroup=workgroup,
            output=output,
            parameters=request.get("ExecutionParameters") or [],
            token=request.get("ClientRequestToken"),
            reuse_seconds=_reuse_seconds(request),
        )
        return {"QueryExecutionId": execution.id}

    def _get(self, request: dict[str, Any]) -> Answer:
        return {"QueryExecution": _describe(self._executions.get(request["QueryExecutionId"]))}

    def _results(self, request: dict[str, Any]) -> Answer:
        execution = self._executions.get(request["QueryExecutionId"])
        if execution.state in {"QUEUED", "RUNNING"}:
            raise invalid_request(
                f"Query has not yet finished. Current state: {execution.state}", "INVALID_QUERY_EXECUTION_STATUS"
            )
        if execution.state != "SUCCEEDED":
            raise invalid_request(
                f"Query did not finish successfully. Final query state: {execution.state}",
                "INVALID_QUERY_EXECUTION_STATUS",
            )
        limit = _limit(request, PAGE_ROWS)
        rows, token = self._executions.store.page(execution.id, execution.header, request.get("NextToken"), limit)
        answer: Answer = {
            "ResultSet": {
                "Rows": [{"Data": [{} if cell is None else {"VarCharValue": cell} for cell in row]} for row in rows],
                "ResultSetMetadata": {"ColumnInfo": [each.info() for each in execution.columns]},
            }
        }
        if token is not None:
            answer["NextToken"] = token
        if execution.statement.writes_rows:
            answer["UpdateCount"] = execution.update_count
        return answer

    def _stop(self, request: dict[str, Any]) -> Answer:
        self._executions.stop(request["QueryExecutionId"])
        return {}

    def _list(self, request: dict[str, Any]) -> Answer:
        ids = [each.id for each in self._executions.newest_first(_known_workgroup(request))]
        # The token is the last id that was given, so that new executions don't move the pages.
        token = request.get("NextToken")
        if token is not None and token not in ids:
            raise invalid_request(f"Invalid NextToken {token!r}.")
        rest = ids[ids.index(token) + 1 :] if token is not None else ids
        limit = _limit(request, PAGE_EXECUTIONS)
        answer: Answer = {"QueryExecutionIds": rest[:limit]}
        if len(rest) > limit:
            answer["NextToken"] = rest[limit - 1]
        return answer

    def _workgroup(self, request: dict[str, Any]) -> Answer:
        configuration = {"EnforceWorkGroupConfiguration": False, "EngineVersion": _ENGINE}
        name = _known_workgroup(request)
        return {"WorkGroup": {"Name": name, "State": "ENABLED", "Configuration": configuration}}

    def _workgroups(self, _request: dict[str, Any]) -> Answer:
        return {"WorkGroups": [{"Name": WORKGROUP, "State": "ENABLED", "EngineVersion": _ENGINE}]}


_ENGINE = {"SelectedEngineVersion": "AUTO", "EffectiveEngineVersion": "Athena engine version 3"}


def serve_athena(executions: Executions) -> None:
    """Make moto's server answer Athena from `executions`."""
    api = AthenaApi(executions)
    offered = frozenset(api.operations)

    class TrinoAthenaResponse(BaseResponse):
        """Moto reads the request and carries the answer; none of its own Athena is used."""

        def __init__(self) -> None:
            super().__init__(service_name="athena")

        def call_action(self) -> TYPE_RESPONSE:
            action = self._get_action()
            try:
                if action not in offered:
                    raise unknown_operation("athena", action, offered)
                body = json.dumps(api.operations[action](json.loads(self.body)))
            except AwsError as error:
                headers = {**self.response_headers, "x-amzn-ErrorType": error.code}
                return error.status, headers, error.as_json()
            return 200, self.response_headers, body

    moto.athena.urls.url_paths["{0}/$"] = TrinoAthenaResponse.dispatch


def _known_workgroup(request: dict[str, Any]) -> str:
    name = request.get("WorkGroup") or WORKGROUP
    if name != WORKGROUP:
        raise invalid_request(f"WorkGroup {name} is not found. The local Athena has {WORKGROUP}.")
    return str(name)


def _reuse_seconds(request: dict[str, Any]) -> float:
    """By its model, an hour where no age is said; a week at most."""
    asked = (request.get("ResultReuseConfiguration") or {}).get("ResultReuseByAgeConfiguration") or {}
    minutes = int(asked.get("MaxAgeInMinutes", 60)) if asked.get("Enabled") else 0
    if not 0 <= minutes <= MOST_REUSE_MINUTES:
        raise invalid_request(f"MaxAgeInMinutes must be from 0 to {MOST_REUSE_MINUTES}, not {minutes}.")
    return 60.0 * minutes


def _limit(request: dict[str, Any], most: int) -> int:
    limit = int(request.get("MaxResults") or most)
    if not 1 <= limit <= most:
        raise invalid_request(f"MaxResults must be from 1 to {most}, not {limit}.")
    return limit


def _describe(execution: Execution) -> Answer:
    status: Answer = {"State": execution.state, "SubmissionDateTime": execution.submitted}
    if execution.completed is not None:
        status["CompletionDateTime"] = execution.completed
    if execution.failure is not None:
        reason = str(execution.failure)
        status["StateChangeReason"] = reason
        status["AthenaError"] = {
            "ErrorCategory": execution.failure.category,
            "Retryable": execution.failure.retryable,
            "ErrorMessage": reason,
        }
    elif execution.state == "CANCELLED":
        status["StateChangeReason"] = "Query cancelled by user"
    context = {"Catalog": CATALOG}
    if execution.database:
        context["Database"] = execution.database
    described: Answer = {
        "QueryExecutionId": execution.id,
        "Query": execution.query,
        "StatementType": execution.statement.kind,
        "SubstatementType": execution.statement.form,
        "ResultConfiguration": {"OutputLocation": f"s3://{execution.target.bucket}/{execution.target.key}"},
        "QueryExecutionContext": context,
        "Status": status,
        "Statistics": _statistics(execution),
        "WorkGroup": execution.workgroup,
        "EngineVersion": _ENGINE,
    }
    if execution.parameters:
        described["ExecutionParameters"] = execution.parameters
    return described


def _statistics(execution: Execution) -> Answer:
    progress = execution.progress
    total = round(((execution.completed or execution.submitted) - execution.submitted) * 1000)
    waited = round(((execution.started or execution.submitted) - execution.submitted) * 1000)
    return {
        "DataScannedInBytes": progress.scanned_bytes,
        "QueryQueueTimeInMillis": waited + progress.queued_ms,
        "QueryPlanningTimeInMillis": progress.planning_ms,
        "EngineExecutionTimeInMillis": progress.elapsed_ms,
        "ServiceProcessingTimeInMillis": max(0, total - waited - progress.elapsed_ms),
        "TotalExecutionTimeInMillis": total,
        "ResultReuseInformation": {"ReusedPreviousResult": execution.reused},
    }
