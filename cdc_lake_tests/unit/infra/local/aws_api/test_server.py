"""Which requests the local AWS API passes to a service, and its errors for the others."""

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
    """A fake of SigningKeys that accepts every request, or none."""

    valid: bool

    def signed(self, _: dict[str, Any]) -> bool:
        """Return whether requests are accepted."""
        return self.valid


def respond(environ: dict[str, Any], *, signed: bool = True) -> tuple[str, str]:
    """Return status and body of the response; a service responds with its name."""
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
    server = {"wsgi.url_scheme": "http", "HTTP_HOST": "127.0.0.1:5000", "SERVER_PORT": "5000"}
    body = b"".join(services({**server, **environ}, start_response))
    return statuses[0], body.decode()


def request(service: str, region: str = "us-east-1") -> dict[str, Any]:
    """Return a request that is signed for a service."""
    scope = f"AWS4-HMAC-SHA256 Credential=key/20260101/{region}/{service}/aws4_request, Signature=x"
    return {"HTTP_AUTHORIZATION": scope, "PATH_INFO": "/", "CONTENT_TYPE": "application/x-amz-json-1.1"}


@pytest.mark.parametrize("service", ["glue", "athena"])
def test_a_signed_request_reaches_its_service(service: str) -> None:
    assert respond(request(service)) == ("200 OK", service)


@pytest.mark.parametrize("service", ["glue", "athena"])
def test_a_request_without_a_valid_signature_is_rejected(service: str) -> None:
    status, body = respond(request(service), signed=False)

    assert status == "403 InvalidSignatureException"
    assert "does not match the stack's keys" in json.loads(body)["Message"]


def test_an_unknown_service_is_rejected_with_its_name() -> None:
    status, body = respond(request("dynamodb"))

    assert status == "400 UnknownOperationException"
    assert "The local AWS API does not have the service dynamodb, only athena, glue." in json.loads(body)["Message"]


def test_errors_of_xml_protocols_are_xml() -> None:
    assert "<Code>UnknownOperationException</Code>" in respond({**request("s3"), "CONTENT_TYPE": ""})[1]


def test_another_region_is_rejected() -> None:
    status, body = respond(request("glue", "eu-west-1"))

    assert status == "400 InvalidSignatureException"
    assert "'eu-west-1'" in json.loads(body)["Message"]


@pytest.mark.parametrize("environ", [{"PATH_INFO": "/"}, {**request("glue"), "PATH_INFO": "/moto-api/reset"}])
def test_unsigned_requests_and_motos_own_api_are_rejected(environ: dict[str, Any]) -> None:
    assert respond(environ)[0].startswith("403")


@pytest.mark.parametrize("host", ["127.0.0.1:5000", "127.0.0.1", "localhost:5000"])
def test_its_own_host_names_are_accepted(host: str) -> None:
    assert respond({**request("glue"), "HTTP_HOST": host})[0] == "200 OK"


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
def test_requests_of_web_pages_are_rejected(page: dict[str, Any]) -> None:
    status, body = respond({**request("glue"), **page})

    assert status == "403 AccessDeniedException"
    message = json.loads(body)["Message"]
    assert message.startswith("The request comes from a web page or names another host")
    assert message.endswith("to http://127.0.0.1:5000.")
