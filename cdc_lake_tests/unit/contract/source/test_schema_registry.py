"""SchemaRegistry against a server with the responses of Apicurio's Confluent-compatible API."""

from __future__ import annotations

import json
import pickle
import socket
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from werkzeug.wrappers import Request, Response

from cdc_lake.contract.errors import SchemaRegistryError
from cdc_lake.contract.source.schema_registry import SchemaRegistry
from cdc_lake_tests.fakes.server import listening

SCHEMA = '{"type":"record","name":"Key","fields":[{"name":"id","type":"int"}]}'
KEY = {"schema": SCHEMA, "references": []}
MISSING = {"error_code": 40403, "message": "No content with id/hash 'contentId-9' was found."}
TOKEN = "Bearer abc"
Answer = tuple[int, Any]


@dataclass
class Registry:
    """Responses by path, used in order; the last one is repeated."""

    answers: dict[str, list[Answer]] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    url: str = ""

    def on(self, path: str, *answers: Answer) -> None:
        self.answers[path] = list(answers)

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:  # noqa: ANN401 - WSGI
        path = environ["REQUEST_URI"]
        self.paths.append(path)
        left = self.answers.get(path, [(404, {"error_code": 404, "message": "HTTP 404 Not Found"})])
        status, body = left.pop(0) if len(left) > 1 else left[0]
        if Request(environ).headers.get("Authorization") != TOKEN:
            status, body = 401, ""
        answer = Response(body, status) if isinstance(body, str) else Response(json.dumps(body), status)
        return answer(environ, start_response)


@pytest.fixture
def registry() -> Iterator[Registry]:
    found = Registry()
    with listening(found) as url:
        found.url = url
        yield found


def client(registry: Registry, retry_seconds: float = 0.5) -> SchemaRegistry:
    return SchemaRegistry(registry.url + "/", TOKEN, retry_seconds=retry_seconds)


def test_a_schema_is_read_once(registry: Registry) -> None:
    registry.on("/schemas/ids/7", (200, KEY))
    schemas = client(registry)
    assert [schemas.schema(7), schemas.schema(7)] == [SCHEMA, SCHEMA]
    assert registry.paths == ["/schemas/ids/7"]


def test_an_unknown_id_is_none_until_it_is_registered(registry: Registry) -> None:
    registry.on("/schemas/ids/9", (404, MISSING), (200, KEY))
    schemas = client(registry)
    assert [schemas.schema(9), schemas.schema(9)] == [None, SCHEMA]


def test_server_errors_are_retried(registry: Registry) -> None:
    registry.on("/schemas/ids/7", (503, "starting"), (500, "starting"), (200, KEY))
    assert client(registry, retry_seconds=10).schema(7) == SCHEMA
    assert len(registry.paths) == 3


def test_lasting_server_errors_name_id_url_and_response(registry: Registry) -> None:
    registry.on("/schemas/ids/7", (503, "starting"))
    url = f"{registry.url}/schemas/ids/7"
    with pytest.raises(SchemaRegistryError, match=rf"schema 7: .* at {url} .* \(503 starting\)\. Nothing was read\."):
        client(registry).schema(7)
    assert len(registry.paths) > 1


def test_a_registry_that_is_down_is_named() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    down = SchemaRegistry(f"http://127.0.0.1:{port}", retry_seconds=0.3)
    with pytest.raises(SchemaRegistryError, match=rf"schema 7: .*127\.0\.0\.1:{port}.*refused.*Check that it runs"):
        down.schema(7)


def test_rejected_credentials_are_reported_at_once(registry: Registry) -> None:
    registry.on("/schemas/ids/7", (200, KEY))
    with pytest.raises(SchemaRegistryError, match=r"Cannot read schema 7: .*rejects the credentials \(401\)"):
        SchemaRegistry(registry.url, "Bearer another").schema(7)
    assert len(registry.paths) == 1


@pytest.mark.parametrize(
    "answer",
    [
        (404, {"error_code": 404, "message": "HTTP 404 Not Found"}),
        (404, "<html>"),
        (400, {"error_code": 400, "message": "bad"}),
        (200, "<html>"),
        (200, {"id": 7}),
        (200, [SCHEMA]),
    ],
)
def test_other_responses_fail_with_id_and_status(registry: Registry, answer: Answer) -> None:
    registry.on("/schemas/ids/7", answer)
    with pytest.raises(SchemaRegistryError, match=rf"Cannot read schema 7: .*/schemas/ids/7 returned {answer[0]} "):
        client(registry).schema(7)
    assert len(registry.paths) == 1


def test_credentials_that_are_no_header_are_not_in_the_error(registry: Registry) -> None:
    with pytest.raises(SchemaRegistryError, match=r"is not a valid header\. Check that it is one line") as refused:
        SchemaRegistry(registry.url, TOKEN + "\n").schema(7)
    assert "abc" not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__suppress_context__


def test_a_schema_with_references_is_rejected(registry: Registry) -> None:
    registry.on("/schemas/ids/7", (200, {**KEY, "references": [{"name": "a", "subject": "b", "version": 1}]}))
    with pytest.raises(SchemaRegistryError, match=r"Cannot use schema 7 of .*it refers to other schemas"):
        client(registry).schema(7)


def test_it_can_be_pickled_and_does_not_print_the_credentials(registry: Registry) -> None:
    registry.on("/schemas/ids/7", (200, KEY))
    copy = pickle.loads(pickle.dumps(client(registry)))  # noqa: S301 - its own bytes
    assert copy == client(registry)
    assert copy.schema(7) == SCHEMA
    assert TOKEN not in repr(copy)
