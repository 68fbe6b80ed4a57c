"""Error messages of the object store: they name the object, the store and what to do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import (
    BotoCoreError,
    ClientError,
    CredentialRetrievalError,
    EndpointConnectionError,
    NoCredentialsError,
    SSOTokenLoadError,
    TokenRetrievalError,
    UnauthorizedSSOTokenError,
)

from cdc_lake.contract.errors import StoreRefusedError, StoreUnreachableError
from cdc_lake.contract.objects.store import PreconditionFailedError, S3Location, S3Store
from cdc_lake.jobs.executor_errors import contract_error_in

OPERATIONS: dict[str, Callable[[S3Store], object]] = {
    "read": lambda store: store.get("raw/shop/x.json"),
    "find": lambda store: store.exists("raw/shop/x.json"),
    "write": lambda store: store.put_new("raw/shop/x.json", b"{}"),
    "replace": lambda store: store.replace("raw/shop/x.json", b"{}", "etag"),
    "list": lambda store: list(store.scan("raw/shop/x.json")),
    "delete": lambda store: store.delete(["raw/shop/x.json"]),
}


class FixedResponse(BaseHTTPRequestHandler):
    """An S3 server with one response to every request. Status 0: it closes the connection in the middle of a body."""

    status = 0
    code = ""

    def _respond(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if not self.status:
            self.send_response(200)
            self.send_header("Content-Length", "100")
            self.send_header("ETag", '"e"')
            self.end_headers()
            self.wfile.write(b"cut")
            return
        body = f"<Error><Code>{self.code}</Code><Message>because</Message></Error>".encode()
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    do_GET = do_PUT = do_POST = do_HEAD = _respond  # noqa: N815 - http.server's names

    def log_message(self, *arguments: object) -> None:
        """Suppress the access log."""


@pytest.fixture
def serve() -> Iterator[Callable[[int, str], S3Store]]:
    """Return a function that starts a server with one response, and returns a store that uses it."""
    servers: list[ThreadingHTTPServer] = []

    def start(status: int, code: str) -> S3Store:
        server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Fixed", (FixedResponse,), {"status": status, "code": code})
        )
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return store_at(f"http://127.0.0.1:{server.server_port}")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def store_at(endpoint: str) -> S3Store:
    """Return a store without retries."""
    client = boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id="me",
        aws_secret_access_key="secret",
        config=Config(
            retries={"total_max_attempts": 1}, connect_timeout=2, read_timeout=2, s3={"addressing_style": "path"}
        ),
    )
    return S3Store("bucket", client)


def unused_endpoint() -> str:
    """Return an address without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("operation", OPERATIONS)
def test_an_unreachable_server_is_reported_with_operation_and_object(operation: str) -> None:
    endpoint = unused_endpoint()
    with pytest.raises(StoreUnreachableError) as caught:
        OPERATIONS[operation](store_at(endpoint))
    message = caught.value.user_message
    assert message.startswith(
        f"Cannot {operation} s3://bucket/raw/shop/x.json: the object store at {endpoint} did not answer ("
    )
    assert "`cdc-lake status`" in message
    assert "`cdc-lake up`" in message
    assert isinstance(caught.value.__cause__, EndpointConnectionError)


def test_a_connection_closed_in_the_middle_of_a_body_is_reported(serve: Callable[[int, str], S3Store]) -> None:
    with pytest.raises(StoreUnreachableError, match=r"Cannot read s3://bucket/raw/shop/x\.json: ") as caught:
        serve(0, "").get("raw/shop/x.json")
    assert isinstance(caught.value.__cause__, BotoCoreError)


@pytest.mark.parametrize("operation", OPERATIONS)
def test_a_refused_request_is_reported_with_operation_and_object(
    serve: Callable[[int, str], S3Store], operation: str
) -> None:
    with pytest.raises(StoreRefusedError) as caught:
        OPERATIONS[operation](serve(403, "AccessDenied"))
    message = caught.value.user_message
    assert message.startswith(f"Cannot {operation} s3://bucket/raw/shop/x.json: the object store at http://127.0.0.1:")
    assert "rejected the request (An error occurred" in message
    assert "`cdc-lake logs s3`" in caught.value.user_message
    assert isinstance(caught.value.__cause__, ClientError)


@pytest.mark.parametrize(
    ("code", "remedy"),
    [("ExpiredToken", "Get new credentials"), ("SlowDown", "Wait until the store has fewer requests")],
)
def test_the_remedy_depends_on_the_error_code(serve: Callable[[int, str], S3Store], code: str, remedy: str) -> None:
    with pytest.raises(StoreRefusedError, match=rf"Cannot write s3://bucket/raw/shop/x\.json: .*{code}.*{remedy}"):
        OPERATIONS["write"](serve(400, code))


def test_cdc_lake_up_is_not_advised_for_another_machine() -> None:
    store = store_at("http://s3.invalid:9")
    with pytest.raises(StoreUnreachableError, match="Check the network and the endpoint") as caught:
        store.get("x")
    assert "cdc-lake up" not in caught.value.user_message


def test_missing_and_existing_objects_are_not_failures(serve: Callable[[int, str], S3Store]) -> None:
    missing_store, existing_store = serve(404, "NoSuchKey"), serve(412, "PreconditionFailed")
    assert missing_store.get("x") is None
    assert not missing_store.exists("x")
    puts: list[Callable[[], object]] = [
        lambda: existing_store.put_new("x", b""),
        lambda: existing_store.replace("x", b"", "etag"),
    ]
    # S3's response to If-Match without an object.
    puts.append(lambda: missing_store.replace("x", b"", "etag"))
    for put in puts:
        with pytest.raises(PreconditionFailedError):
            put()


@pytest.mark.parametrize(
    "error",
    [
        NoCredentialsError(),
        UnauthorizedSSOTokenError(),
        SSOTokenLoadError(profile_name="work", error_msg="expired"),
        TokenRetrievalError(provider="sso", error_msg="expired"),
        CredentialRetrievalError(provider="process", error_msg="exit code 1"),
    ],
)
def test_missing_credentials_are_not_reported_as_an_unreachable_store(
    monkeypatch: pytest.MonkeyPatch, error: BotoCoreError
) -> None:
    def fail(**_: object) -> None:
        raise error

    store = store_at(unused_endpoint())
    monkeypatch.setattr(store.client, "get_object", fail)
    with pytest.raises(
        StoreRefusedError, match=r"Cannot read s3://bucket/x: boto3 has no valid credentials .*sso login"
    ):
        store.get("x")


def test_the_driver_raises_the_error_of_an_executor() -> None:
    with pytest.raises(StoreUnreachableError) as caught:
        store_at(unused_endpoint()).get("x")
    error_class = type(caught.value)
    found = contract_error_in(
        f"Traceback (most recent call last):\n{error_class.__module__}.{error_class.__name__}: {caught.value}\n"
    )
    assert isinstance(found, StoreUnreachableError)
    assert found.user_message == caught.value.user_message


def test_the_number_of_attempts_is_six() -> None:
    config = (
        replace(S3Location("bucket"), endpoint_url=unused_endpoint(), region="us-east-1").store().client.meta.config
    )
    assert config.retries == {"mode": "standard", "total_max_attempts": 6}  # type: ignore[attr-defined]
