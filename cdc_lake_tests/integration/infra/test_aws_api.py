"""The local AWS API on Trino and S3, called by boto3."""

from __future__ import annotations

import csv
import io
import threading
import time
from collections.abc import Callable
from typing import Any, Literal

import boto3
import httpx
import pyarrow.parquet as pq
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from mypy_boto3_athena import AthenaClient
from mypy_boto3_glue import GlueClient

from cdc_lake_tests.integration.conftest import QueryStack
from infra.local.components.trino import token
from infra.local.stack.stack_secrets import load_or_make
from resources.waiting import until

FINAL = {"SUCCEEDED", "FAILED", "CANCELLED"}
NUMBERS = "UNNEST(sequence(1, 10000))"
LONG_QUERY = f"SELECT count(*) FROM {NUMBERS} a(x), {NUMBERS} b(x), {NUMBERS} c(x)"


def _client(service: Literal["athena", "glue", "s3"], query_stack: QueryStack, attempts: int = 3) -> Any:  # noqa: ANN401
    at = query_stack.at
    return boto3.client(
        service,
        endpoint_url=at.s3_endpoint if service == "s3" else at.aws_endpoint,
        region_name=at.region,
        aws_access_key_id=at.s3_access_key,
        aws_secret_access_key=at.s3_secret_key.get_secret_value(),
        config=Config(retries={"total_max_attempts": attempts}, s3={"addressing_style": "path"}),
    )


@pytest.fixture
def athena(query_stack: QueryStack) -> AthenaClient:
    return _client("athena", query_stack)  # type: ignore[no-any-return]


@pytest.fixture
def glue(query_stack: QueryStack) -> GlueClient:
    return _client("glue", query_stack)  # type: ignore[no-any-return]


def _start(athena: AthenaClient, query_stack: QueryStack, sql: str) -> str:
    return athena.start_query_execution(
        QueryString=sql,
        QueryExecutionContext={"Database": "datalake"},
        ResultConfiguration={"OutputLocation": f"s3://{query_stack.at.bucket}/results/"},
    )["QueryExecutionId"]


def _reached(athena: AthenaClient, query_id: str, states: set[str]) -> dict[str, Any]:
    return until(
        lambda: dict(athena.get_query_execution(QueryExecutionId=query_id)["QueryExecution"]),
        lambda execution: execution["Status"]["State"] in states,
        seconds=60,
        what=f"query {query_id} to be one of {sorted(states)}",
        pause_seconds=0.05,
    )


def _run(athena: AthenaClient, query_stack: QueryStack, sql: str) -> dict[str, Any]:
    return _reached(athena, _start(athena, query_stack, sql), FINAL)


def test_the_stacks_database_exists_in_glue(glue: GlueClient) -> None:
    assert "datalake" in [each["Name"] for each in glue.get_databases()["DatabaseList"]]


def test_rows_are_returned_in_pages_and_as_a_csv_object(athena: AthenaClient, query_stack: QueryStack) -> None:
    execution = _run(
        athena, query_stack, "SELECT x, if(x % 2 = 0, '') AS e FROM UNNEST(sequence(1, 2500)) t(x) ORDER BY x"
    )

    assert execution["Status"]["State"] == "SUCCEEDED"
    pages = list(athena.get_paginator("get_query_results").paginate(QueryExecutionId=execution["QueryExecutionId"]))
    rows = [[cell.get("VarCharValue") for cell in row["Data"]] for page in pages for row in page["ResultSet"]["Rows"]]
    assert [len(page["ResultSet"]["Rows"]) for page in pages] == [1000, 1000, 501]
    assert rows[:3] == [["x", "e"], ["1", None], ["2", ""]]
    assert [info["Type"] for info in pages[0]["ResultSet"]["ResultSetMetadata"]["ColumnInfo"]] == ["bigint", "varchar"]

    bucket, _, key = execution["ResultConfiguration"]["OutputLocation"].removeprefix("s3://").partition("/")
    text = _client("s3", query_stack).get_object(Bucket=bucket, Key=key)["Body"].read().decode()
    assert text.startswith('"x","e"\n"1",\n"2",""\n')
    assert len(list(csv.reader(io.StringIO(text)))) == 2501


def test_a_running_query_is_stopped_in_the_engine_too(athena: AthenaClient, query_stack: QueryStack) -> None:
    query_id = _start(athena, query_stack, LONG_QUERY)
    _reached(athena, query_id, {"RUNNING"})
    running = _engine_queries(query_stack, "RUNNING")

    athena.stop_query_execution(QueryExecutionId=query_id)

    assert _reached(athena, query_id, FINAL)["Status"]["State"] == "CANCELLED"
    until(
        lambda: running & _engine_queries(query_stack, "RUNNING"),
        lambda left: not left,
        seconds=20,
        what="the engine to stop the query",
    )


def _engine_queries(query_stack: QueryStack, state: str) -> set[str]:
    secrets = load_or_make(query_stack.stack.home.secrets_file)
    headers = {"Authorization": f"Bearer {token(secrets)}", "X-Forwarded-Proto": "https"}
    answer = httpx.get(f"{query_stack.at.trino_url}/v1/query", headers=headers, trust_env=False)
    return {each["queryId"] for each in answer.json() if each["state"] == state and "sequence" in each["query"]}


def test_a_failed_query_has_the_engines_reason(athena: AthenaClient, query_stack: QueryStack) -> None:
    status = _run(athena, query_stack, "SELECT nothing FROM (VALUES 1) t(x)")["Status"]

    assert status["State"] == "FAILED"
    assert status["StateChangeReason"] == "COLUMN_NOT_FOUND: line 1:8: Column 'nothing' cannot be resolved"
    assert status["AthenaError"]["ErrorCategory"] == 2


def test_tables_and_views_of_the_engine_are_in_the_catalog_and_survive_a_kill(
    athena: AthenaClient, glue: GlueClient, query_stack: QueryStack
) -> None:
    place = f"s3://{query_stack.at.bucket}/ctas/"
    statements = (
        f"CREATE TABLE made WITH (format = 'PARQUET', external_location = '{place}') AS SELECT 1 AS id, 'a' AS name",
        "CREATE OR REPLACE VIEW seen AS SELECT name FROM made",
        "CREATE OR REPLACE VIEW seen AS SELECT id, name FROM made",
        "CREATE TABLE inside WITH (format = 'ORC') AS SELECT * FROM made",
        "INSERT INTO inside SELECT 2, 'b'",
    )
    for sql in statements:
        status = _run(athena, query_stack, sql)["Status"]
        assert status["State"] == "SUCCEEDED", status
    before = {each["Name"]: each for each in glue.get_tables(DatabaseName="datalake")["TableList"]}
    assert before["made"]["StorageDescriptor"]["Location"].rstrip("/") == place.rstrip("/")
    assert before["seen"]["TableType"] == "VIRTUAL_VIEW"

    query_stack.kill("aws")
    query_stack.repair()

    assert {each["Name"]: each for each in glue.get_tables(DatabaseName="datalake")["TableList"]} == before
    view = _run(athena, query_stack, "SELECT id, name FROM seen")
    cells = athena.get_query_results(QueryExecutionId=view["QueryExecutionId"])["ResultSet"]["Rows"][1]["Data"]
    assert [each["VarCharValue"] for each in cells] == ["1", "a"]
    for sql in ("DROP VIEW seen", "DROP TABLE inside", "DROP TABLE made"):
        assert _run(athena, query_stack, sql)["Status"]["State"] == "SUCCEEDED"


def test_a_statement_writes_at_most_a_hundred_partitions_with_the_tables_codec(
    athena: AthenaClient, glue: GlueClient, query_stack: QueryStack
) -> None:
    place = f"s3://{query_stack.at.bucket}/partitioned/"
    rows = "SELECT x AS id, x AS part FROM UNNEST(sequence({}, {})) t(x)"
    made = (
        f"CREATE TABLE {{}} WITH (format = 'PARQUET', write_compression = 'SNAPPY', partitioned_by = ARRAY['part'], "
        f"external_location = '{place}{{}}/') AS {rows}"
    )
    refused = _run(athena, query_stack, made.format("wide", "wide", 1, 101))["Status"]
    assert refused["State"] == "FAILED"
    limit = "HIVE_TOO_MANY_OPEN_PARTITIONS: Exceeded limit of 100 open writers for partitions/buckets"
    assert refused["StateChangeReason"].startswith(limit)
    assert "wide" not in {each["Name"] for each in glue.get_tables(DatabaseName="datalake")["TableList"]}

    for sql in (made.format("narrow", "narrow", 1, 100), f"INSERT INTO narrow {rows.format(101, 150)}"):
        status = _run(athena, query_stack, sql)["Status"]
        assert status["State"] == "SUCCEEDED", status
    counted = _run(athena, query_stack, "SELECT count(*), count(DISTINCT part) FROM narrow")
    cells = athena.get_query_results(QueryExecutionId=counted["QueryExecutionId"])["ResultSet"]["Rows"][1]["Data"]
    assert [each["VarCharValue"] for each in cells] == ["150", "150"]
    s3, bucket = _client("s3", query_stack), query_stack.at.bucket
    for part in (1, 150):
        [file] = s3.list_objects_v2(Bucket=bucket, Prefix=f"partitioned/narrow/part={part}/")["Contents"]
        body = s3.get_object(Bucket=bucket, Key=file["Key"])["Body"].read()
        assert pq.ParquetFile(io.BytesIO(body)).metadata.row_group(0).column(0).compression == "SNAPPY"
    assert _run(athena, query_stack, "DROP TABLE narrow")["Status"]["State"] == "SUCCEEDED"

    odd = _run(athena, query_stack, "CREATE TABLE odd WITH (write_compression = 'BROTLI') AS SELECT 1 AS id")["Status"]
    assert "Unsupported compression BROTLI" in odd["StateChangeReason"]


def test_every_acknowledged_change_survives_a_kill_among_writers(glue: GlueClient, query_stack: QueryStack) -> None:
    glue.create_database(DatabaseInput={"Name": "killed"})
    acknowledged: set[str] = set()

    def write(writer: int) -> None:
        client = _client("glue", query_stack, attempts=1)
        for number in range(10_000):
            name = f"t_{writer}_{number}"
            try:
                client.create_table(DatabaseName="killed", TableInput={"Name": name})
            except (BotoCoreError, ClientError):
                return
            acknowledged.add(name)

    writers = [threading.Thread(target=write, args=(number,)) for number in range(4)]
    for each in writers:
        each.start()
    until(lambda: len(acknowledged), lambda count: count > 50, seconds=20, what="fifty tables to be created")
    query_stack.kill("aws")
    for each in writers:
        each.join()
    query_stack.repair()

    there = {each["Name"] for each in glue.get_tables(DatabaseName="killed")["TableList"]}
    assert acknowledged <= there
    assert len(there - acknowledged) <= len(writers)  # created, but the answer was lost
    glue.delete_database(Name="killed")


@pytest.mark.parametrize(
    ("service", "call"),
    [
        ("glue", lambda client: client.create_crawler(Name="c", Role="r", Targets={})),
        ("athena", lambda client: client.create_work_group(Name="w")),
    ],
)
def test_an_unsupported_operation_is_refused_by_name(
    service: Literal["athena", "glue"], call: Callable[[Any], None], query_stack: QueryStack
) -> None:
    with pytest.raises(ClientError, match="The local AWS API does not have the operation") as refused:
        call(_client(service, query_stack))

    assert refused.value.response["Error"]["Code"] == "UnknownOperationException"


def test_no_key_is_on_a_command_line_or_in_a_log(query_stack: QueryStack) -> None:
    secret = query_stack.at.s3_secret_key.get_secret_value()

    for component in ("trino", "aws"):
        with open(f"/proc/{query_stack.pid(component)}/cmdline", encoding="utf-8") as line:  # noqa: PTH123
            assert secret not in line.read()
        assert secret not in query_stack.stack.home.log(component).read_text()


def test_a_warm_query_takes_less_than_two_seconds(athena: AthenaClient, query_stack: QueryStack) -> None:
    _run(athena, query_stack, "SELECT 1")
    began = time.monotonic()

    _run(athena, query_stack, "SELECT 1")

    assert time.monotonic() - began < 2
