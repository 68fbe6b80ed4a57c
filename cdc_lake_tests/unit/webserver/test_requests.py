"""Only requests of Dagster's own pages and of programs reach its web server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from dagster import DagsterInstance
from dagster._core.workspace.context import WorkspaceProcessContext
from dagster._core.workspace.load_target import EmptyWorkspaceTarget
from starlette.testclient import TestClient, WebSocketDenialResponse

from cdc_lake.webserver.__main__ import application

OWN = "http://127.0.0.1:3000"
SOCKET = "ws://127.0.0.1:3000/graphql"
MUTATION = "mutation { setNuxSeen }"
BODY = json.dumps({"query": MUTATION})
PROTOCOL = ["graphql-ws"]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """A client of Dagster's application as our module serves it, without a code location."""
    with (
        DagsterInstance.local_temp(str(tmp_path_factory.mktemp("dagster"))) as instance,
        WorkspaceProcessContext(instance, EmptyWorkspaceTarget()) as context,
    ):
        yield TestClient(application(context), base_url=OWN)


@pytest.fixture
def mutation_runs(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """An entry for each run of MUTATION."""
    del client
    calls: list[bool] = []
    monkeypatch.setattr("dagster_graphql.schema.roots.mutation.set_nux_seen", lambda *_: calls.append(True))
    return calls


def test_requests_of_dagsters_pages_and_of_programs_are_accepted(client: TestClient, mutation_runs: list[bool]) -> None:
    body = {"query": MUTATION}
    for headers in ({}, {"Origin": OWN}, {"Host": "localhost:3000", "Origin": "http://localhost:3000"}):
        assert client.get("/", headers=headers).status_code == 200
        assert client.post("/graphql?op=x", json=body, headers=headers).is_success
    assert client.post("/graphql", content=MUTATION, headers={"Content-Type": "application/graphql"}).is_success
    assert len(mutation_runs) == 4


@pytest.mark.parametrize("origin", [None, OWN])
def test_subscriptions_of_dagsters_pages_are_accepted(client: TestClient, origin: str | None) -> None:
    headers = {} if origin is None else {"Origin": origin}
    with client.websocket_connect(SOCKET, subprotocols=PROTOCOL, headers=headers) as socket:
        socket.send_json({"type": "connection_init"})
        assert socket.receive_json() == {"type": "connection_ack"}


FOREIGN = [
    {"Host": "evil.example"},
    {"Host": "evil.example:3000", "Origin": "http://evil.example:3000"},
    {"Host": "127.0.0.1.evil.example"},
    {"Origin": "http://evil.example"},
    {"Origin": "http://127.0.0.1:8888"},
    {"Origin": "http://localhost:3000"},
    {"Origin": "null"},
]


@pytest.mark.parametrize("headers", FOREIGN)
def test_a_foreign_page_cannot_read(client: TestClient, headers: dict[str, str]) -> None:
    for path in ("/", "/server_info", "/logs/x.out"):
        assert client.get(path, headers=headers).status_code in {400, 403}
    assert client.post("/report_asset_materialization/x", headers=headers).status_code in {400, 403}


@pytest.mark.parametrize("headers", FOREIGN)
def test_a_foreign_page_cannot_run_an_operation(
    client: TestClient, mutation_runs: list[bool], headers: dict[str, str]
) -> None:
    body = {"query": MUTATION}
    assert client.post("/graphql", json=body, headers=headers).status_code in {400, 403}
    assert client.post("/graphql", params=body, headers={**headers, "Content-Type": "text/plain"}).is_client_error
    assert client.get("/graphql", params=body, headers=headers).is_client_error
    assert mutation_runs == []


@pytest.mark.parametrize("headers", FOREIGN)
def test_a_foreign_page_cannot_subscribe(client: TestClient, headers: dict[str, str]) -> None:
    with (
        pytest.raises(WebSocketDenialResponse) as refused,
        client.websocket_connect(SOCKET, subprotocols=PROTOCOL, headers=headers),
    ):
        pass
    assert refused.value.status_code in {400, 403}


@pytest.mark.parametrize(
    "request_arguments",
    [
        {"method": "GET", "params": {"query": MUTATION}},
        {"method": "GET", "params": {"query": MUTATION}, "headers": {"Accept": "text/html"}},
        {"method": "POST", "params": {"query": MUTATION}},
        {"method": "POST", "params": {"query": MUTATION}, "headers": {"Content-Type": "text/plain"}},
        {"method": "POST", "content": BODY,
         "headers": {"Content-Type": "text/plain; application/json"}},
        {"method": "POST", "content": BODY,
         "headers": {"Content-Type": "multipart/form-data; boundary=application/json"}},
        {"method": "POST", "content": MUTATION, "headers": {"Content-Type": "text/plain; application/graphql"}},
        {"method": "POST", "data": {"query": MUTATION}},
    ],
)  # fmt: skip
def test_requests_that_any_page_can_send_run_no_operation(
    client: TestClient, mutation_runs: list[bool], request_arguments: dict[str, Any]
) -> None:
    response = client.request(url="/graphql", **request_arguments)
    assert response.status_code == 403 or "graphiql" in response.text
    assert mutation_runs == []
