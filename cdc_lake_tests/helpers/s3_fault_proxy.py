"""An HTTP proxy in front of an S3 server that injects the faults of a network or a busy store."""

from __future__ import annotations

import http.client
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


@dataclass(frozen=True)
class Request:
    """A request as passed to a rule; `number` counts the requests of this method and path from 1."""

    method: str
    path: str
    number: int

    @property
    def writes(self) -> bool:
        """Return whether the request is a put, a post or a delete."""
        return self.method in {"PUT", "POST", "DELETE"}


@dataclass(frozen=True)
class Refuse:
    """The request is not forwarded; the answer is an error of the store."""

    status: int
    code: str

    def body(self) -> bytes:
        """Return the body of an S3 error (https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html)."""
        return f"<Error><Code>{self.code}</Code><Message>{self.code} of the fault proxy</Message></Error>".encode()


@dataclass(frozen=True)
class LoseAnswer:
    """The server executes the request, and the connection is closed before the answer."""


@dataclass(frozen=True)
class HalfAnswer:
    """The server executes the request, and the connection is closed in the middle of the answer's body.

    An answer without a body is lost, as with LoseAnswer.
    """


@dataclass(frozen=True)
class CutOff:
    """The connection is closed in the middle of the request's body; a request without a body is not forwarded."""


@dataclass(frozen=True)
class Hang:
    """The request is not forwarded or answered, so that the client times out.

    The connection stays open until the proxy stops.
    """


Fault = Refuse | LoseAnswer | HalfAnswer | CutOff | Hang
Rule = Callable[[Request], Fault | None]

SLOW_DOWN = Refuse(503, "SlowDown")
INTERNAL_ERROR = Refuse(500, "InternalError")
EXPIRED_TOKEN = Refuse(400, "ExpiredToken")


@dataclass
class FaultProxy:
    """The proxy at `endpoint` in front of the server at `target`; both are URLs. `rule` may be set at any time.

    `injected` contains the requests that got a fault, in order. `answered` counts the server's answers by method, path
    and status. `stopped` ends the requests that hang.
    """

    target: str
    rule: Rule = lambda _: None
    endpoint: str = ""
    injected: list[tuple[Request, Fault]] = field(default_factory=list)
    answered: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    stopped: threading.Event = field(default_factory=threading.Event)
    _seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def next_fault(self, method: str, path: str) -> Fault | None:
        """Count a request of this method and path, and return its fault, if any."""
        with self._lock:
            self._seen[method, path] += 1
            request = Request(method, path, self._seen[method, path])
            fault = self.rule(request)
            if fault is not None:
                self.injected.append((request, fault))
            return fault

    def count_answer(self, method: str, path: str, status: int) -> None:
        """Count an answer of the server."""
        with self._lock:
            self.answered[method, path, status] += 1


@contextmanager
def fault_proxy(target: str) -> Iterator[FaultProxy]:
    """Run a proxy in front of the server at `target` during the block; without a rule it only forwards."""
    proxy = FaultProxy(target)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(proxy))
    server.daemon_threads = True
    proxy.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield proxy
    finally:
        proxy.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(proxy: FaultProxy) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # The body is written after the headers. With Nagle's algorithm it would wait until the client has acknowledged
        # them, which takes 40 ms.
        disable_nagle_algorithm = True

        def serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length else b""
            path = unquote(urlsplit(self.path).path)
            fault = proxy.next_fault(self.command, path)
            match fault:
                case Refuse():
                    self._answer(fault.status, fault.code, [("Content-Type", "application/xml")], fault.body())
                case Hang():
                    proxy.stopped.wait()
                    self._hang_up()
                case CutOff():
                    if body:
                        self._upstream(body[: len(body) // 2]).close()
                    self._hang_up()
                case _:
                    upstream = self._upstream(body)
                    answer = upstream.getresponse()
                    content = answer.read()
                    upstream.close()
                    proxy.count_answer(self.command, path, answer.status)
                    if fault == HalfAnswer() and content:
                        self._answer(answer.status, answer.reason, answer.getheaders(), content[: len(content) // 2])
                        self._hang_up()
                    elif fault is None:
                        self._answer(answer.status, answer.reason, answer.getheaders(), content)
                    else:
                        self._hang_up()

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve  # noqa: N815 - the base class's names

        def _upstream(self, body: bytes) -> http.client.HTTPConnection:
            """Open a connection to the server, and send the client's headers and this body."""
            at = urlsplit(proxy.target)
            upstream = http.client.HTTPConnection(at.hostname or "", at.port, timeout=60)
            # The client's Host header is part of its signature.
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() != "expect":
                    upstream.putheader(name, value)
            upstream.endheaders(body or None)
            return upstream

        def _answer(self, status: int, reason: str, headers: list[tuple[str, str]], content: bytes) -> None:
            self.send_response_only(status, reason)
            length = str(len(content))
            for name, value in headers:
                if name.lower() == "content-length":
                    length = value  # not len(content): a HEAD's answer has no body, and HalfAnswer sends half of one
                elif name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", length)
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def _hang_up(self) -> None:
            self.close_connection = True
            self.connection.close()

        def log_message(self, *_: object) -> None:
            """Log nothing."""

    return Handler
