"""Athena's operations for running a query; requests and responses have the members of botocore's service model.

There is one workgroup, `primary`. Differences from Athena, because Trino runs the statements:

- DDL is Trino's: CREATE TABLE AS, CREATE [OR REPLACE] VIEW, CREATE SCHEMA, DROP. Hive's CREATE EXTERNAL TABLE, MSCK
  REPAIR and ALTER TABLE are not supported; tables are created by CTAS or through the Glue API.
- CREATE TABLE AS accepts `format`, `external_location`, `partitioned_by`, `bucketed_by`, `bucket_count` and
  `write_compression`, `parquet_compression` or `orc_compression` as Athena does (table_properties.py), but not
  `table_type` and `is_external`. Without `external_location` the data is written below the database's location, not
  below the output location, and is deleted with the table (Athena leaves it). INSERT INTO writes with the table's codec
  only if this process created the table, otherwise with GZIP.
- A statement that would write more than 100 partitions fails as in Athena. It leaves no files (Athena leaves them).
- A syntax error makes the execution FAILED; Athena often rejects the request.
- SHOW and DESCRIBE return Trino's columns. Results are reused only within one process. Nothing is encrypted.
"""

from __future__ import annotations

from typing import Any

from infra.local.aws_api.athena.errors import invalid_request
from infra.local.aws_api.athena.executions import Execution, Executions
from infra.local.aws_api.athena.result_files import S3Location
from infra.local.aws_api.athena.statements import CATALOG, classify
from infra.local.aws_api.json_protocol import JsonService, Operation

WORKGROUP = "primary"
PAGE_ROWS = 1000
MAX_REUSE_MINUTES = 10080
_ENGINE = {"SelectedEngineVersion": "AUTO", "EffectiveEngineVersion": "Athena engine version 3"}

Answer = dict[str, Any]


def athena_service(executions: Executions) -> JsonService:
    """Return the Athena service."""
    return JsonService("athena", AthenaOperations(executions).by_name)


class AthenaOperations:
    """The supported operations: `by_name` maps their names to functions."""

    def __init__(self, executions: Executions) -> None:
        self._executions = executions
        self.by_name: dict[str, Operation] = {
            "StartQueryExecution": self._start,
            "GetQueryExecution": self._get,
            "GetQueryResults": self._results,
            "StopQueryExecution": self._stop,
        }

    def _start(self, request: dict[str, Any]) -> Answer:
        context = request.get("QueryExecutionContext") or {}
        catalog = context.get("Catalog", CATALOG)
        if catalog.lower() != CATALOG:
            raise invalid_request(f"Catalog '{catalog}' does not exist; the only catalog is AwsDataCatalog.")
        workgroup = request.get("WorkGroup") or WORKGROUP
        if workgroup != WORKGROUP:
            raise invalid_request(
                f"WorkGroup {workgroup} is not found; the only workgroup of the local Athena is {WORKGROUP}."
            )
        uri = (request.get("ResultConfiguration") or {}).get("OutputLocation")
        if not uri:
            raise invalid_request("No output location provided: ResultConfiguration.OutputLocation is needed.")
        output = S3Location.parse(uri)
        self._executions.results.check_bucket(output)
        query = request["QueryString"]
        execution = self._executions.start(
            query,
            classify(query),
            database=context.get("Database"),
            output=output,
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
        limit = int(request.get("MaxResults") or PAGE_ROWS)
        if not 1 <= limit <= PAGE_ROWS:
            raise invalid_request(f"MaxResults must be from 1 to {PAGE_ROWS}, not {limit}.")
        rows, token = self._executions.results.page(execution.id, execution.header, request.get("NextToken"), limit)
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


def _reuse_seconds(request: dict[str, Any]) -> float:
    """Return the maximum age of a result to reuse in seconds, 0 without reuse; default: 60 minutes, as in Athena."""
    reuse = (request.get("ResultReuseConfiguration") or {}).get("ResultReuseByAgeConfiguration") or {}
    minutes = int(reuse.get("MaxAgeInMinutes", 60)) if reuse.get("Enabled") else 0
    if not 0 <= minutes <= MAX_REUSE_MINUTES:
        raise invalid_request(f"MaxAgeInMinutes must be from 0 to {MAX_REUSE_MINUTES}, not {minutes}.")
    return 60.0 * minutes


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
    return {
        "QueryExecutionId": execution.id,
        "Query": execution.query,
        "StatementType": execution.statement.kind,
        "SubstatementType": execution.statement.form,
        "ResultConfiguration": {"OutputLocation": f"s3://{execution.target.bucket}/{execution.target.key}"},
        "QueryExecutionContext": context,
        "Status": status,
        "Statistics": _statistics(execution),
        "WorkGroup": WORKGROUP,
        "EngineVersion": _ENGINE,
    }


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
