"""Which requests the local AWS API passes on to a service, and how it refuses the others."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, cast

import pytest

from infra.local.aws_api.server import AwsServices, StartResponse
from infra.local.aws_api.signatures import SigningKeys


@dataclass(frozen=True)
class Keys:
    """In the place of SigningKeys: every request counts as signed, or none."""

    valid: bool

    def signed(self, _: dict[str, Any]) -> bool:
        """See SigningKeys."""
        return self.valid


def answer(environ: dict[str, Any], *, signed: bool = True) -> tuple[str, str]:
    """Status and body of the answer to a request; a service answers with its name."""
    statuses: list[str] = []

    def service(name: str) -> Any:  # noqa: ANN401 - WSGI
        def application(_: dict[str, Any], start_response: StartResponse) -> Iterable[bytes]:
            start_response("200 OK", [])
            return [name.encode()]

        return application

    def start_response(status: str, _headers: list[tuple[str, str]], /) -> None:
        statuses.append(status)

    keys = cast(SigningKeys, Keys(signed))
    services = AwsServices({name: service(name) for name in ("athena", "glue")}, "us-east-1", keys)
    body = b"".join(services({"wsgi.url_scheme": "http", "HTTP_HOST": "127.0.0.1:5000", **environ}, start_response))
    return statuses[0], body.decode()


def request(service: str, region: str = "us-east-1") -> dict[str, Any]:
    """A request that is signed for a service."""
    scope = f"AWS4-HMAC-SHA256 Credential=key/20260101/{region}/{service}/aws4_request, Signature=x"
    return {"HTTP_AUTHORIZATION": scope, "PATH_INFO": "/", "CONTENT_TYPE": "application/x-amz-json-1.1"}


@pytest.mark.parametrize("service", ["glue", "athena"])
def test_a_signed_request_reaches_its_service(service: str) -> None:
    assert answer(request(service)) == ("200 OK", service)


@pytest.mark.parametrize("service", ["glue", "athena"])
def test_without_a_valid_signature_a_request_is_refused(service: str) -> None:
    status, body = answer(request(service), signed=False)

    assert status == "403 InvalidSignatureException"
    assert "does not match the stack's keys" in json.loads(body)["Message"]


def test_another_service_is_refused_by_name() -> None:
    status, body = answer(request("dynamodb"))

    assert status == "400 UnknownOperationException"
    assert "dynamodb is not offered by the local AWS API, which has athena, glue." in json.loads(body)["Message"]


def test_a_service_of_the_xml_protocols_gets_xml() -> None:
    assert "<Code>UnknownOperationException</Code>" in answer({**request("s3"), "CONTENT_TYPE": ""})[1]


def test_another_region_is_refused() -> None:
    status, body = answer(request("glue", "eu-west-1"))

    assert status == "400 InvalidSignatureException"
    assert "'eu-west-1'" in json.loads(body)["Message"]


@pytest.mark.parametrize("environ", [{"PATH_INFO": "/"}, {**request("glue"), "PATH_INFO": "/moto-api/reset"}])
def test_unsigned_requests_and_motos_own_api_are_refused(environ: dict[str, Any]) -> None:
    assert answer(environ)[0].startswith("403")


@pytest.mark.parametrize("host", ["127.0.0.1:5000", "127.0.0.1", "localhost:5000"])
def test_its_own_host_names_are_answered(host: str) -> None:
    assert answer({**request("glue"), "HTTP_HOST": host})[0] == "200 OK"


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
    status, body = answer({**request("glue"), **page})

    assert status == "403 AccessDeniedException"
    assert "Cannot answer a request of a web page or for another host" in json.loads(body)["Message"]
