"""Signatures: only requests that are signed with the stack's keys are served."""

from __future__ import annotations

import io
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Literal

import boto3
import pytest
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.config import Config
from botocore.credentials import Credentials
from botocore.exceptions import ClientError
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from cdc_lake_tests.fakes.server import serving
from infra.local.aws_api import signatures
from infra.local.aws_api.signatures import SigningKeys

REGION = "us-east-1"
STACK_KEYS = SigningKeys("stack-key", "stack-secret")


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    """Services of moto with several protocols."""
    moto = DomainDispatcherApplication(create_backend_app)
    with serving(dict.fromkeys(("glue", "secretsmanager", "sts"), moto), keys=STACK_KEYS) as url:
        yield url


def client(
    endpoint: str,
    key: str = "stack-key",
    secret: str = "stack-secret",
    service: Literal["secretsmanager", "glue", "sts"] = "secretsmanager",
) -> Any:  # noqa: ANN401 - not all clients have type stubs here
    """Return boto3's client with these keys."""
    return boto3.client(
        service,
        endpoint_url=endpoint,
        region_name=REGION,
        aws_access_key_id=key,
        aws_secret_access_key=secret,
        config=Config(retries={"total_max_attempts": 1}),
    )


def test_requests_signed_with_the_stacks_keys_are_served(endpoint: str) -> None:
    created = client(endpoint).create_secret(Name="shop", SecretString="ünïcode & more")
    assert client(endpoint).get_secret_value(SecretId=created["ARN"])["SecretString"] == "ünïcode & more"


@pytest.mark.parametrize(("key", "secret"), [("stack-key", "guessed"), ("other-key", "stack-secret")])
def test_requests_signed_with_other_keys_are_rejected(endpoint: str, key: str, secret: str) -> None:
    with pytest.raises(ClientError, match="does not match the stack's keys") as refused:
        client(endpoint, key, secret).list_secrets()
    assert refused.value.response["Error"]["Code"] == "InvalidSignatureException"


def test_every_protocol_is_verified(endpoint: str) -> None:
    assert client(endpoint, service="sts").get_caller_identity()["Account"] == "123456789012"
    assert client(endpoint, service="glue").get_databases()["DatabaseList"] == []
    with pytest.raises(ClientError, match="does not match the stack's keys"):
        client(endpoint, secret="guessed", service="sts").get_caller_identity()
    with pytest.raises(ClientError, match="does not match the stack's keys"):
        client(endpoint, secret="guessed", service="glue").get_databases()


def test_a_path_with_escaped_names_and_a_query_is_verified() -> None:
    url = "/v1/clusters/arn%3Aaws%3Akafka%3Aus-east-1%3A1%3Acluster%2Fa%20b/c?maxResults=5&nextToken=a%2Fb%3D"
    request = AWSRequest("GET", f"http://127.0.0.1:1{url}")
    SigV4Auth(Credentials("stack-key", "stack-secret"), "kafka", REGION).add_auth(request)
    environ = {
        "REQUEST_METHOD": "GET",
        "REQUEST_URI": url,
        "HTTP_HOST": "127.0.0.1:1",
        "HTTP_X_AMZ_DATE": request.headers["X-Amz-Date"],
        "HTTP_AUTHORIZATION": request.headers["Authorization"],
        "wsgi.input": io.BytesIO(),
    }
    assert STACK_KEYS.signed(environ)
    assert not STACK_KEYS.signed({**environ, "REQUEST_URI": url.replace("maxResults=5", "maxResults=6")})


@pytest.mark.parametrize(("minutes", "valid"), [(-16, False), (-14, True), (14, True), (16, False)])
def test_a_signature_is_valid_for_fifteen_minutes(monkeypatch: pytest.MonkeyPatch, minutes: int, valid: bool) -> None:
    environ = signed_request()
    then = datetime.now(UTC) + timedelta(minutes=minutes)
    monkeypatch.setattr(signatures, "_now", lambda: then)
    assert STACK_KEYS.signed(environ) is valid


def signed_request() -> dict[str, Any]:
    """Return a signed request as a server receives it."""
    headers = {"Content-Type": "application/x-amz-json-1.1", "X-Amz-Target": "secretsmanager.GetSecretValue"}
    request = AWSRequest("POST", "http://127.0.0.1:1/", data=b'{"SecretId": "shop"}', headers=headers)
    SigV4Auth(Credentials("stack-key", "stack-secret"), "secretsmanager", REGION).add_auth(request)
    return {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/",
        "REQUEST_URI": "/",
        "CONTENT_TYPE": headers["Content-Type"],
        "CONTENT_LENGTH": "20",
        "HTTP_HOST": "127.0.0.1:1",
        "HTTP_X_AMZ_TARGET": headers["X-Amz-Target"],
        "HTTP_X_AMZ_DATE": request.headers["X-Amz-Date"],
        "HTTP_AUTHORIZATION": request.headers["Authorization"],
        "wsgi.input": io.BytesIO(b'{"SecretId": "shop"}'),
    }


def test_a_changed_request_is_rejected() -> None:
    environ = signed_request()
    assert STACK_KEYS.signed(environ)
    assert environ["wsgi.input"].read() == b'{"SecretId": "shop"}'
    for changed in (
        {"wsgi.input": io.BytesIO(b'{"SecretId": "bank"}')},
        {"HTTP_X_AMZ_TARGET": "secretsmanager.DeleteSecret"},
        {"HTTP_X_AMZ_DATE": "20200101T000000Z"},
        {"HTTP_X_AMZ_DATE": "yesterday"},
        {"REQUEST_URI": "/other"},
        {"REQUEST_METHOD": "GET"},
        {"HTTP_AUTHORIZATION": ""},
        {"CONTENT_LENGTH": str(2**30)},
    ):
        assert not STACK_KEYS.signed({**signed_request(), **changed}), changed


def test_the_secret_key_is_not_in_the_repr() -> None:
    assert "stack-secret" not in repr(STACK_KEYS)
