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
from botocore.exceptions import BotoCoreError, ClientError, EndpointConnectionError

from cdc_lake.contract.errors import StoreRefusedError, StoreUnreachableError
from cdc_lake.contract.objects.store import PreconditionFailedError, S3Location, S3Store
from cdc_lake.jobs.executor_errors import contract_error_in

OPERATIONS: dict[str, Callable[[S3Store], object]] = {
    "reading": lambda store: store.get("raw/shop/x.json"),
    "looking for": lambda store: store.exists("raw/shop/x.json"),
    "writing": lambda store: store.put_new("raw/shop/x.json", b"{}"),
    "replacing": lambda store: store.replace("raw/shop/x.json", b"{}", "etag"),
    "listing": lambda store: list(store.scan("raw/shop/x.json")),
    "deleting": lambda store: store.delete(["raw/shop/x.json"]),
}


class Answers(BaseHTTPRequestHandler):
    """An S3 server with one answer to everything; with status 0 it hangs up in the middle of a body."""

    status = 0
    code = ""

    def _answer(self) -> None:
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

    do_GET = do_PUT = do_POST = do_HEAD = _answer  # noqa: N815 - http.server's names

    def log_message(self, *arguments: object) -> None:
        """Say nothing."""


@pytest.fixture
def serve() -> Iterator[Callable[[int, str], S3Store]]:
    """Starts servers of one answer; a store at each."""
    servers: list[ThreadingHTTPServer] = []

    def start(status: int, code: str) -> S3Store:
        server = ThreadingHTTPServer(("127.0.0.1", 0), type("Fixed", (Answers,), {"status": status, "code": code}))
        servers.append(server)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        return at(f"http://127.0.0.1:{server.server_port}")

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def at(endpoint: str) -> S3Store:
    """A store without retries."""
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


def nobody() -> str:
    """An address without a listener."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        return f"http://127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("doing", OPERATIONS)
def test_a_server_that_is_gone(doing: str) -> None:
    endpoint = nobody()
    with pytest.raises(StoreUnreachableError) as caught:
        OPERATIONS[doing](at(endpoint))
    said = caught.value.user_message
    assert said.startswith(f"the object store at {endpoint} stopped answering at {doing} s3://bucket/raw/shop/x.json (")
    assert "`cdc-lake status`" in said
    assert "`cdc-lake up`" in said
    assert isinstance(caught.value.__cause__, EndpointConnectionError)


def test_a_server_that_goes_in_the_middle_of_an_object(serve: Callable[[int, str], S3Store]) -> None:
    with pytest.raises(StoreUnreachableError, match=r"at reading s3://bucket/raw/shop/x\.json") as caught:
        serve(0, "").get("raw/shop/x.json")
    assert isinstance(caught.value.__cause__, BotoCoreError)


@pytest.mark.parametrize("doing", OPERATIONS)
def test_a_server_that_refuses(serve: Callable[[int, str], S3Store], doing: str) -> None:
    with pytest.raises(StoreRefusedError) as caught:
        OPERATIONS[doing](serve(403, "AccessDenied"))
    assert f"failed at {doing} s3://bucket/raw/shop/x.json (An error occurred" in caught.value.user_message
    assert "`cdc-lake logs s3`" in caught.value.user_message
    assert isinstance(caught.value.__cause__, ClientError)


@pytest.mark.parametrize(
    ("code", "todo"), [("ExpiredToken", "Get new credentials"), ("SlowDown", "Wait until the store has fewer requests")]
)
def test_a_refusal_with_another_remedy(serve: Callable[[int, str], S3Store], code: str, todo: str) -> None:
    with pytest.raises(StoreRefusedError, match=rf"at writing s3://bucket/raw/shop/x\.json \(.*{code}.*{todo}"):
        OPERATIONS["writing"](serve(400, code))


def test_another_machine_is_not_started_by_up() -> None:
    store = at("http://s3.invalid:9")
    with pytest.raises(StoreUnreachableError, match="Check the network and the endpoint") as caught:
        store.get("x")
    assert "cdc-lake up" not in caught.value.user_message


def test_what_is_missing_or_taken_is_no_failure(serve: Callable[[int, str], S3Store]) -> None:
    gone, taken = serve(404, "NoSuchKey"), serve(412, "PreconditionFailed")
    assert gone.get("x") is None
    assert not gone.exists("x")
    for put in (lambda: taken.put_new("x", b""), lambda: taken.replace("x", b"", "etag")):
        with pytest.raises(PreconditionFailedError):
            put()


def test_the_error_reaches_the_driver_from_an_executor() -> None:
    with pytest.raises(StoreUnreachableError) as caught:
        at(nobody()).get("x")
    kind = type(caught.value)
    found = contract_error_in(
        f"Traceback (most recent call last):\n{kind.__module__}.{kind.__name__}: {caught.value}\n"
    )
    assert isinstance(found, StoreUnreachableError)
    assert found.user_message == caught.value.user_message


def test_how_often_it_is_asked_again_stays() -> None:
    config = replace(S3Location("bucket"), endpoint_url=nobody(), region="us-east-1").store().client.meta.config
    assert config.retries == {"mode": "standard", "total_max_attempts": 6}  # type: ignore[attr-defined]
