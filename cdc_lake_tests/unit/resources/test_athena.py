"""The Athena resource against a fake server with Athena's protocol."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

import pytest

from resources.athena import Athena, AthenaQueryFailed
from resources.errors import AccessRefused, Unreachable, WaitTimedOut

Answer = tuple[int, dict[str, Any]]
NAMES = ("one", "price")
INFO = [
    {"Name": "one", "Type": "integer", "Precision": 10, "Scale": 0, "Nullable": "UNKNOWN"},
    {"Name": "price", "Type": "decimal", "Precision": 6, "Scale": 2, "Nullable": "UNKNOWN"},
]


def _row(*cells: str | None) -> dict[str, Any]:
    return {"Data": [{} if each is None else {"VarCharValue": each} for each in cells]}


class Server:
    """Responds by operation. `script` has responses that precede the usual ones."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.requests: list[tuple[str, dict[str, Any]]] = []
        self.script: dict[str, list[Answer]] = {}
        self.status: dict[str, Any] = {"State": "SUCCEEDED"}
        self.kind, self.scanned, self.reused = "DML", 77, False
        self.url = ""

    def answer(self, operation: str, request: dict[str, Any]) -> Answer:
        self.calls[operation] += 1
        self.requests.append((operation, request))
        if self.script.get(operation):
            return self.script[operation].pop(0)
        if operation == "StartQueryExecution":
            return 200, {"QueryExecutionId": "q-1"}
        if operation == "GetQueryExecution":
            execution = {"QueryExecutionId": "q-1", "Query": "…", "StatementType": self.kind, "Status": self.status}
            execution["Status"] = {"SubmissionDateTime": 0.0, **self.status}
            reused = {"ResultReuseInformation": {"ReusedPreviousResult": self.reused}}
            return 200, {"QueryExecution": {**execution, "Statistics": {"DataScannedInBytes": self.scanned, **reused}}}
        if operation == "GetQueryResults":
            first = "NextToken" not in request
            rows = [_row(*NAMES), _row("1", "10.50")] if first else [_row("2", None)]
            page: dict[str, Any] = {"ResultSet": {"Rows": rows, "ResultSetMetadata": {"ColumnInfo": INFO}}}
            return 200, {**page, "NextToken": "more"} if first else page
        return 200, {}


@pytest.fixture
def server() -> Iterator[Server]:
    state = Server()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, body = state.answer(self.headers["X-Amz-Target"].split(".")[-1], request)
            raw = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *_: object) -> None:
            """Suppress the access log."""

    http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    state.url = f"http://127.0.0.1:{http.server_port}"
    thread = Thread(target=http.serve_forever)
    thread.start()
    yield state
    http.shutdown()
    thread.join()
    http.server_close()


@pytest.fixture
def athena(server: Server) -> Callable[..., Athena]:
    def make(**more: Any) -> Athena:  # noqa: ANN401
        settings = {"endpoint_url": server.url, "access_key": "k", "secret_key": "s", "poll_seconds": 0.01, **more}
        return Athena(database="lake", output_location="s3://b/r", **settings)

    return make


def test_rows_have_python_types(athena: Callable[..., Athena], server: Server) -> None:
    result = athena().query("SELECT 1")

    assert result.columns == (("one", "integer"), ("price", "decimal"))
    assert result.rows == ((1, Decimal("10.50")), (2, None))
    assert (result.query_id, result.bytes_scanned) == ("q-1", 77)
    start = server.requests[0][1]
    assert start["QueryExecutionContext"] == {"Catalog": "AwsDataCatalog", "Database": "lake"}
    assert start["ResultConfiguration"]["OutputLocation"] == "s3://b/r/"


def test_scanned_bytes_and_cost_are_summed(athena: Callable[..., Athena], server: Server) -> None:
    resource = athena(usd_per_tb=5.0)
    metered = resource.metered("shop")
    metered.query("SELECT 1")
    assert (metered.spent.queries, metered.spent.bytes_scanned) == (1, 77)
    assert metered.spent.usd == pytest.approx(10e6 / 1e12 * 5), "at least 10 MB are billed"
    server.kind, server.scanned = "DDL", 0
    metered.execute("CREATE VIEW v AS SELECT 1")
    assert (metered.spent.queries, metered.spent.usd) == (2, pytest.approx(10e6 / 1e12 * 5))
    server.kind, server.scanned = "DML", 2 * 10**12
    metered.query("SELECT 1")
    assert metered.spent.usd == pytest.approx(10.00005)
    assert (resource.spent.queries, metered.metered("shop").spent.queries) == (0, 0)


def test_an_earlier_result_is_reused_only_on_request(athena: Callable[..., Athena], server: Server) -> None:
    resource = athena(usd_per_tb=5.0)
    assert not resource.query("SELECT 1").reused
    assert "ResultReuseConfiguration" not in server.requests[0][1]
    server.scanned, server.reused = 0, True
    spent = resource.spent.usd
    assert resource.query("SELECT 1", reuse_minutes=30).reused
    _, started = [request for operation, request in server.requests if operation == "StartQueryExecution"]
    reuse = {"ResultReuseByAgeConfiguration": {"Enabled": True, "MaxAgeInMinutes": 30}}
    assert started["ResultReuseConfiguration"] == reuse
    assert resource.spent.usd == spent, "a reused result is not billed"


def test_without_a_price_there_is_no_cost(athena: Callable[..., Athena]) -> None:
    resource = athena()
    resource.query("SELECT 1")
    assert (resource.spent.bytes_scanned, resource.spent.usd) == (77, None)


def test_a_failed_statement_is_not_billed(athena: Callable[..., Athena], server: Server) -> None:
    server.status = {"State": "FAILED", "StateChangeReason": "no"}
    resource = athena(usd_per_tb=5.0)
    with pytest.raises(AthenaQueryFailed):
        resource.query("SELECT 1")
    assert resource.spent.queries == 0


def test_throttled_calls_are_retried(athena: Callable[..., Athena], server: Server) -> None:
    slow_down: Answer = (400, {"__type": "TooManyRequestsException", "Message": "Rate exceeded"})
    server.script["StartQueryExecution"] = [slow_down]
    server.script["GetQueryResults"] = [slow_down]

    assert len(athena().query("SELECT 1").rows) == 2
    assert server.calls["StartQueryExecution"] == 2


def test_lasting_throttling_raises_an_error(athena: Callable[..., Athena], server: Server) -> None:
    server.script["StartQueryExecution"] = [(400, {"__type": "ThrottlingException", "Message": "Rate exceeded"})] * 9

    with pytest.raises(AthenaQueryFailed, match="Rate exceeded"):
        athena(attempts=2).query("SELECT 1")

    assert server.calls["StartQueryExecution"] == 2


def test_a_failed_query_reports_its_id_and_the_cause(athena: Callable[..., Athena], server: Server) -> None:
    server.status = {"State": "FAILED", "StateChangeReason": "TABLE_NOT_FOUND: line 2:6: Table 'x' does not exist"}

    with pytest.raises(AthenaQueryFailed) as failed:
        athena().query("SELECT *\nFROM x")

    assert failed.value.query_id == "q-1"
    assert failed.value.user_message == (
        "Cannot run `SELECT * …` on Athena (query q-1): TABLE_NOT_FOUND: line 2:6: Table 'x' does not exist. "
        "Materialise the asset that writes the table, or add its database to the name (default: lake)."
    )


def test_a_denied_query_names_the_permission(athena: Callable[..., Athena], server: Server) -> None:
    reason = "Insufficient permissions to execute the query. User is not authorized to perform: glue:GetTable on x"
    server.status = {"State": "FAILED", "StateChangeReason": reason}

    with pytest.raises(AthenaQueryFailed, match=r"query q-1.*glue:GetTable on x\. Allow the caller to read the table"):
        athena().query("SELECT 1")


def test_a_rejected_statement_has_no_query_id(athena: Callable[..., Athena], server: Server) -> None:
    refusal = {"__type": "InvalidRequestException", "Message": "line 1:1: mismatched input 'SELEC'"}
    server.script["StartQueryExecution"] = [(400, refusal)]

    with pytest.raises(AthenaQueryFailed, match="not started") as failed:
        athena().execute("SELEC 1")

    assert failed.value.query_id is None


def test_a_query_that_takes_too_long_is_stopped(athena: Callable[..., Athena], server: Server) -> None:
    server.status = {"State": "RUNNING"}

    with pytest.raises(WaitTimedOut, match=r"it took longer than 0\.2 s"):
        athena(query_timeout_seconds=0.2).query("SELECT 1")

    assert server.calls["StopQueryExecution"] == 1


def test_a_query_of_an_interrupted_run_is_stopped(athena: Callable[..., Athena], server: Server) -> None:
    server.status, stopped = {"State": "RUNNING"}, Event()
    stopped.set()

    with pytest.raises(AthenaQueryFailed, match="it was cancelled, because the run that started it was interrupted"):
        athena().metered("shop", stopped).query("SELECT 1")

    assert server.calls["StopQueryExecution"] == 1


def test_an_unreachable_server_is_reported_with_the_hint(athena: Callable[..., Athena]) -> None:
    with pytest.raises(Unreachable) as unreachable:
        athena(endpoint_url="http://127.0.0.1:9", attempts=1, hint="Run `cdc-lake up`.").query("SELECT 1")

    assert unreachable.value.user_message.endswith("Run `cdc-lake up`.")


def test_an_expired_token_is_reported_as_refused_access(athena: Callable[..., Athena], server: Server) -> None:
    server.script["StartQueryExecution"] = [(400, {"__type": "ExpiredTokenException", "Message": "expired"})]

    with pytest.raises(AccessRefused, match=r"workgroup primary: .*expired. Get new ones"):
        athena().query("SELECT 1")
