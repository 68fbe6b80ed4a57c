"""What the endpoint lets through to moto, and how it refuses the rest."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest

from infra.local.aws_endpoint.gate import Gate


def _through(environ: dict[str, Any]) -> tuple[str, str]:
    seen: list[str] = []

    def moto(_environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:  # noqa: ANN401
        start_response("200 OK", [])
        return [b"moto"]

    def start_response(status: str, _headers: list[tuple[str, str]], /) -> None:
        seen.append(status)

    body = b"".join(Gate(moto, "us-east-1")(environ, start_response))
    return seen[0], body.decode()


def _signed(service: str, region: str = "us-east-1") -> dict[str, Any]:
    scope = f"AWS4-HMAC-SHA256 Credential=key/20260101/{region}/{service}/aws4_request, Signature=x"
    return {"HTTP_AUTHORIZATION": scope, "PATH_INFO": "/", "CONTENT_TYPE": "application/x-amz-json-1.1"}


@pytest.mark.parametrize("service", ["glue", "athena", "sts"])
def test_an_offered_service_is_served(service: str) -> None:
    assert _through(_signed(service)) == ("200 OK", "moto")


def test_another_service_is_refused_by_name() -> None:
    status, body = _through(_signed("dynamodb"))

    assert status == "400 UnknownOperationException"
    assert "dynamodb is not offered" in json.loads(body)["Message"]


def test_a_service_of_the_xml_protocols_gets_xml() -> None:
    environ = {**_signed("s3"), "CONTENT_TYPE": ""}

    assert "<Code>UnknownOperationException</Code>" in _through(environ)[1]


def test_another_region_is_refused() -> None:
    status, body = _through(_signed("glue", "eu-west-1"))

    assert status == "400 InvalidSignatureException"
    assert "'eu-west-1'" in json.loads(body)["Message"]


@pytest.mark.parametrize("environ", [{"PATH_INFO": "/"}, {**_signed("glue"), "PATH_INFO": "/moto-api/reset"}])
def test_unsigned_requests_and_motos_own_api_are_refused(environ: dict[str, Any]) -> None:
    assert _through(environ)[0].startswith("403")
