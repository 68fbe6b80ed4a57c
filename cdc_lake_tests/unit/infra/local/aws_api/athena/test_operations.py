"""Athena's operations on a fake engine and bucket; responses are checked with botocore's model."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import botocore.session
import pytest
from botocore.exceptions import ClientError
from botocore.validate import ParamValidator

from infra.local.aws_api.athena.executions import Executions
from infra.local.aws_api.athena.operations import AthenaOperations
from infra.local.aws_api.athena.result_columns import Column
from infra.local.aws_api.athena.result_files import ResultFiles
from infra.local.aws_api.athena.trino_engine import USER_ERROR, Outcome, Progress, QueryFailed, QueryStopped
from infra.local.aws_api.errors import AwsError
from resources.waiting import until

MODEL = botocore.session.get_session().get_service_model("athena")
COLUMNS = [
    Column("id", {"rawType": "integer", "arguments": []}),
    Column("name", {"rawType": "varchar", "arguments": [{"kind": "LONG", "value": 9}]}),
]
OUTPUT = {"OutputLocation": "s3://results/here"}


class Bucket:
    """The S3 operations that result files use."""

    def __init__(self) -> None:
        self.objects: dict[str, str] = {}

    def head_bucket(self, *, Bucket: str) -> None:  # noqa: N803 - boto3's name
        if Bucket != "results":
            raise ClientError({"Error": {"Code": "404", "Message": "Not Found"}}, "HeadBucket")

    def upload_file(self, path: str, bucket: str, key: str) -> None:
        self.objects[f"s3://{bucket}/{key}"] = Path(path).read_text(encoding="utf-8")


class Engine:
    """Returns an outcome that depends on the statement's text."""

    def __init__(self) -> None:
        self.statements: list[tuple[str, str | None]] = []
        self.codecs: list[str | None] = []
        self.hold = threading.Event()

    def run(
        self,
        sql: str,
        *,
        catalog: str,
        schema: str | None,
        codec: str | None,
        progress: Progress,
        stopped: Callable[[], bool],
    ) -> Outcome:
        assert catalog == "awsdatacatalog"
        self.statements.append((sql, schema))
        self.codecs.append(codec)
        if "broken" in sql:
            raise QueryFailed("COLUMN_NOT_FOUND: line 1:8: no such column", USER_ERROR)
        if "long" in sql:
            while not self.hold.wait(0.01):
                if stopped():
                    raise QueryStopped
        progress.update({"physicalInputBytes": 42, "elapsedTimeMillis": 7})
        if sql.startswith(("CREATE", "INSERT")):
            return Outcome([], iter(()), 3)
        return Outcome(COLUMNS, iter([[1, 'a "b"'], [2, None], [3, ""]]), None)


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


@pytest.fixture
def engine() -> Iterator[Engine]:
    engine = Engine()
    yield engine
    engine.hold.set()


@pytest.fixture
def call(tmp_path: Path, bucket: Bucket, engine: Engine) -> Callable[..., dict[str, Any]]:
    """Call an operation and check the response with botocore's model."""
    api = AthenaOperations(Executions(engine, ResultFiles(tmp_path, bucket)))  # type: ignore[arg-type]

    def call(operation: str, **request: object) -> dict[str, Any]:
        response = api.by_name[operation](request)
        shape = MODEL.operation_model(operation).output_shape
        assert shape is not None
        report = ParamValidator().validate(response, shape)
        assert not report.has_errors(), report.generate_report()
        return response

    return call


def _run(call: Callable[..., dict[str, Any]], sql: str, **more: object) -> dict[str, Any]:
    """Run a statement to its end and return the QueryExecution."""
    query_id = call("StartQueryExecution", QueryString=sql, ResultConfiguration=OUTPUT, **more)["QueryExecutionId"]
    return _ended(call, query_id)


def _ended(call: Callable[..., dict[str, Any]], query_id: str) -> dict[str, Any]:
    return until(
        lambda: dict(call("GetQueryExecution", QueryExecutionId=query_id)["QueryExecution"]),
        lambda found: found["Status"]["State"] not in {"QUEUED", "RUNNING"},
        seconds=5,
        what=f"query {query_id} to end",
        pause_seconds=0.01,
    )


def _cells(page: dict[str, Any]) -> list[list[str | None]]:
    return [[each.get("VarCharValue") for each in row["Data"]] for row in page["ResultSet"]["Rows"]]


def test_a_select_succeeds_with_statistics(call: Callable[..., dict[str, Any]], engine: Engine) -> None:
    execution = _run(call, "SELECT * FROM t;", QueryExecutionContext={"Database": "lake"})

    assert execution["Status"]["State"] == "SUCCEEDED"
    assert execution["Statistics"]["DataScannedInBytes"] == 42
    assert (execution["StatementType"], execution["SubstatementType"]) == ("DML", "SELECT")
    assert engine.statements == [("SELECT * FROM t", "lake")]


def test_a_result_is_reused_on_request(call: Callable[..., dict[str, Any]], engine: Engine) -> None:
    reuse = {"ResultReuseConfiguration": {"ResultReuseByAgeConfiguration": {"Enabled": True, "MaxAgeInMinutes": 5}}}
    first = _run(call, "SELECT 1", **reuse)
    second = _run(call, "SELECT 1", **reuse)
    found = [call("GetQueryResults", QueryExecutionId=each["QueryExecutionId"]) for each in (first, second)]

    assert found[0]["ResultSet"] == found[1]["ResultSet"]
    assert first["Statistics"]["ResultReuseInformation"] == {"ReusedPreviousResult": False}
    assert second["Statistics"]["ResultReuseInformation"] == {"ReusedPreviousResult": True}
    assert second["Statistics"]["DataScannedInBytes"] == 0
    assert second["ResultConfiguration"] == first["ResultConfiguration"]
    assert len(engine.statements) == 1
    for other in ({}, {**reuse, "QueryExecutionContext": {"Database": "other"}}):
        statistics = _run(call, "SELECT 1", **other)["Statistics"]
        assert statistics["ResultReuseInformation"] == {"ReusedPreviousResult": False}
    assert len(engine.statements) == 3


def test_rows_are_paged_after_a_header(call: Callable[..., dict[str, Any]]) -> None:
    query_id = _run(call, "SELECT 1")["QueryExecutionId"]

    first = call("GetQueryResults", QueryExecutionId=query_id, MaxResults=2)
    second = call("GetQueryResults", QueryExecutionId=query_id, MaxResults=2, NextToken=first["NextToken"])

    assert _cells(first) == [["id", "name"], ["1", 'a "b"']]
    assert _cells(second) == [["2", None], ["3", ""]]
    assert "NextToken" not in second


def test_the_result_is_a_csv_object_with_every_cell_quoted(call: Callable[..., dict[str, Any]], bucket: Bucket) -> None:
    location = _run(call, "SELECT 1")["ResultConfiguration"]["OutputLocation"]

    assert location.startswith("s3://results/here/")
    assert location.endswith(".csv")
    assert bucket.objects[location] == '"id","name"\n"1","a ""b"""\n"2",\n"3",""\n'


def test_a_statement_that_writes_reports_the_number_of_rows(
    call: Callable[..., dict[str, Any]], bucket: Bucket
) -> None:
    execution = _run(call, "CREATE TABLE t AS SELECT 1 x")

    page = call("GetQueryResults", QueryExecutionId=execution["QueryExecutionId"])

    assert (page["UpdateCount"], page["ResultSet"]["Rows"]) == (3, [])
    assert "/tables/" in execution["ResultConfiguration"]["OutputLocation"]
    assert not bucket.objects


def test_the_same_token_returns_the_same_execution(call: Callable[..., dict[str, Any]], engine: Engine) -> None:
    first = _run(call, "SELECT 1", ClientRequestToken="t" * 32)
    second = _run(call, "SELECT 1", ClientRequestToken="t" * 32)

    assert first["QueryExecutionId"] == second["QueryExecutionId"]
    assert len(engine.statements) == 1


def test_a_failed_execution_has_a_reason(call: Callable[..., dict[str, Any]]) -> None:
    execution = _run(call, "SELECT broken")

    assert execution["Status"]["State"] == "FAILED"
    assert execution["Status"]["StateChangeReason"].startswith("COLUMN_NOT_FOUND")
    assert execution["Status"]["AthenaError"]["ErrorCategory"] == USER_ERROR
    with pytest.raises(AwsError, match="Final query state: FAILED"):
        call("GetQueryResults", QueryExecutionId=execution["QueryExecutionId"])


def test_a_running_query_is_stopped(call: Callable[..., dict[str, Any]]) -> None:
    query_id = call("StartQueryExecution", QueryString="SELECT long", ResultConfiguration=OUTPUT)["QueryExecutionId"]
    with pytest.raises(AwsError, match="not yet finished"):
        call("GetQueryResults", QueryExecutionId=query_id)

    call("StopQueryExecution", QueryExecutionId=query_id)

    assert _ended(call, query_id)["Status"]["State"] == "CANCELLED"


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"ResultConfiguration": {}}, "No output location"),
        ({"ResultConfiguration": {"OutputLocation": "results"}}, "not a valid S3 path"),
        ({"ResultConfiguration": {"OutputLocation": "s3://elsewhere/"}}, "output bucket elsewhere"),
        ({"ResultConfiguration": OUTPUT, "WorkGroup": "other"}, "WorkGroup other is not found"),
        ({"ResultConfiguration": OUTPUT, "QueryExecutionContext": {"Catalog": "hudi"}}, "Catalog 'hudi'"),
    ],
)
def test_an_invalid_query_request_is_rejected(
    call: Callable[..., dict[str, Any]], request_: dict[str, Any], message: str
) -> None:
    with pytest.raises(AwsError, match=message):
        call("StartQueryExecution", QueryString="SELECT 1", **request_)


@pytest.mark.parametrize("operation", ["GetQueryExecution", "GetQueryResults", "StopQueryExecution"])
def test_an_unknown_execution_is_rejected(call: Callable[..., dict[str, Any]], operation: str) -> None:
    with pytest.raises(AwsError, match="QueryExecution nowhere was not found"):
        call(operation, QueryExecutionId="nowhere")
