"""The worker behind `kafkaconnect`, asked over HTTP: what passes by itself is waited for, the rest is told."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from httpx import BasicAuth
from werkzeug.wrappers import Response

from cdc_lake_tests.fakes.server import listening
from infra.local.aws_endpoint.connect_worker import RefusedError, RestWorker
from infra.local.aws_endpoint.errors import AwsError

LOGIN = ("cdc-lake", "pa55word")


@dataclass
class Scripted:
    """A server that answers one prepared answer after the other, the last one again and again."""

    answers: list[tuple[int, Any]] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    authorization: str = ""
    url: str = ""

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Any:  # noqa: ANN401 - WSGI
        self.asked.append(f"{environ['REQUEST_METHOD']} {environ['REQUEST_URI']}")
        self.authorization = environ.get("HTTP_AUTHORIZATION", "")
        status, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        return Response(json.dumps(body), status, mimetype="application/json")(environ, start_response)


@pytest.fixture
def server() -> Iterator[Scripted]:
    """The server, listening."""
    scripted = Scripted()
    with listening(scripted) as url:
        scripted.url = url
        yield scripted


def test_a_rebalance_is_waited_for(server: Scripted) -> None:
    server.answers = [(409, {"message": "rebalance"}), (409, {"message": "rebalance"}), (201, {})]
    RestWorker(server.url, LOGIN).put("a shop", {"connector.class": "X"})
    assert server.asked == ["PUT /connectors/a%20shop/config"] * 3
    assert server.authorization == BasicAuth(*LOGIN)._auth_header


def test_a_refused_configuration_is_no_failure_of_the_worker(server: Scripted) -> None:
    server.answers = [(400, {"message": "no such class"})]
    with pytest.raises(RefusedError, match="no such class"):
        RestWorker(server.url, LOGIN).put("shop", {})


def test_the_trace_is_that_of_the_first_that_failed(server: Scripted) -> None:
    tasks = [{"state": "RUNNING"}, {"state": "FAILED", "trace": "no such host"}]
    server.answers = [(200, {"connector": {"state": "RUNNING"}, "tasks": tasks})]
    status = RestWorker(server.url, LOGIN).status("shop")
    assert status is not None
    assert (status.failed, status.running, status.trace) == (True, False, "no such host")


def test_what_is_not_there_is_none_and_deleted(server: Scripted) -> None:
    server.answers = [(404, {"message": "not found"})]
    assert RestWorker(server.url, LOGIN).status("shop") is None
    RestWorker(server.url, LOGIN).delete("shop")


@pytest.mark.parametrize("action", ["pause", "restart?includeTasks=true&onlyFailed=true"])
def test_an_error_of_the_worker_is_an_error_of_the_service(server: Scripted, action: str) -> None:
    server.answers = [(500, {"message": "disk full"})]
    with pytest.raises(AwsError, match=r"InternalServerErrorException.*/connectors/shop/.*500.*disk full"):
        RestWorker(server.url, LOGIN).ask("shop", action)


def test_a_worker_that_is_down_is_named() -> None:
    with pytest.raises(AwsError, match=r"ServiceUnavailableException: .*127\.0\.0\.1:9 does not answer"):
        RestWorker("http://127.0.0.1:9", LOGIN).status("shop")
