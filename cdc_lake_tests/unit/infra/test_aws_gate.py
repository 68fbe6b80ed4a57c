"""What the endpoint lets through to a service, and how it refuses the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from infra.local.aws_endpoint.gate import Environ, Gate


def _through(environ: dict[str, Any], *, signed: bool = True) -> tuple[str, str]:
    seen: list[str] = []

    def moto(_environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:  # noqa: ANN401
        start_response("200 OK", [])
        return [b"moto"]

    def own(_environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:  # noqa: ANN401
        start_response("200 OK", [])
        return [b"own"]

    def is_signed(_environ: Environ) -> bool:
        return signed

    def start_response(status: str, _headers: list[tuple[str, str]], /) -> None:
        seen.append(status)

    gate = Gate(moto, "us-east-1", is_signed, {"emr-serverless": own})
    body = b"".join(gate({"wsgi.url_scheme": "http", "HTTP_HOST": "127.0.0.1:5000", **environ}, start_response))
    return seen[0], body.decode()


def _of(service: str, region: str = "us-east-1") -> dict[str, Any]:
    scope = f"AWS4-HMAC-SHA256 Credential=key/20260101/{region}/{service}/aws4_request, Signature=x"
    return {"HTTP_AUTHORIZATION": scope, "PATH_INFO": "/", "CONTENT_TYPE": "application/x-amz-json-1.1"}


@pytest.mark.parametrize("service", ["glue", "athena", "sts", "secretsmanager"])
def test_an_offered_service_is_served(service: str) -> None:
    assert _through(_of(service)) == ("200 OK", "moto")


def test_a_service_of_our_own_is_served_by_its_application() -> None:
    assert _through(_of("emr-serverless")) == ("200 OK", "own")


@pytest.mark.parametrize("service", ["glue", "athena", "sts", "secretsmanager", "emr-serverless"])
def test_without_a_right_signature_none_is(service: str) -> None:
    status, body = _through(_of(service), signed=False)

    assert status == "403 InvalidSignatureException"
    assert "does not match the stack's keys" in json.loads(body)["Message"]


def test_another_service_is_refused_by_name() -> None:
    status, body = _through(_of("dynamodb"))

    assert status == "400 UnknownOperationException"
    assert "dynamodb is not offered" in json.loads(body)["Message"]


def test_a_service_of_the_xml_protocols_gets_xml() -> None:
    environ = {**_of("s3"), "CONTENT_TYPE": ""}

    assert "<Code>UnknownOperationException</Code>" in _through(environ)[1]


@pytest.mark.parametrize("service", ["emr-serverless", "kafka", "kafkaconnect", "quicksight"])
def test_a_service_of_the_rest_protocol_gets_json(service: str) -> None:
    assert "__type" in json.loads(_through({**_of(service), "CONTENT_TYPE": ""}, signed=False)[1])


def test_another_region_is_refused() -> None:
    status, body = _through(_of("glue", "eu-west-1"))

    assert status == "400 InvalidSignatureException"
    assert "'eu-west-1'" in json.loads(body)["Message"]


@pytest.mark.parametrize("environ", [{"PATH_INFO": "/"}, {**_of("glue"), "PATH_INFO": "/moto-api/reset"}])
def test_unsigned_requests_and_motos_own_api_are_refused(environ: dict[str, Any]) -> None:
    assert _through(environ)[0].startswith("403")


@pytest.mark.parametrize("host", ["127.0.0.1:5000", "127.0.0.1", "localhost:5000"])
def test_its_own_names_are_answered(host: str) -> None:
    assert _through({**_of("glue"), "HTTP_HOST": host})[0] == "200 OK"


@pytest.mark.parametrize(
    "page",
    [
        {"HTTP_HOST": "evil.example:5000"},
        {"HTTP_HOST": "127.0.0.1.evil.example"},
        {"HTTP_HOST": ""},
        {"HTTP_ORIGIN": "http://evil.example"},
        {"HTTP_ORIGIN": "http://127.0.0.1:5000"},
        {"HTTP_ORIGIN": "null"},
    ],
)
def test_web_pages_are_refused(page: dict[str, Any]) -> None:
    status, body = _through({**_of("glue"), **page})

    assert status == "403 AccessDeniedException"
    assert "Cannot answer a request of a web page or for another host" in json.loads(body)["Message"]
