"""An HTTP proxy in front of an S3 server that does to a request what a network or a busy store can do."""

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
    """A request as a rule sees it: `number` counts from 1 the requests of this method and path."""

    method: str
    path: str
    number: int

    @property
    def writes(self) -> bool:
        """Whether it puts, posts or deletes something."""
        return self.method in {"PUT", "POST", "DELETE"}


@dataclass(frozen=True)
class Refuse:
    """The store's own refusal, without the request being done."""

    status: int
    code: str

    def body(self) -> bytes:
        """What S3 writes (https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html)."""
        return f"<Error><Code>{self.code}</Code><Message>{self.code} of the test's wire</Message></Error>".encode()


@dataclass(frozen=True)
class LoseAnswer:
    """The request is done, and the connection ends before its answer."""


@dataclass(frozen=True)
class HalfAnswer:
    """The request is done, and the connection ends in the middle of the answer's body."""


@dataclass(frozen=True)
class CutOff:
    """The connection ends in the middle of the request's body; one without a body is not forwarded at all."""


@dataclass(frozen=True)
class Hang:
    """Nothing is forwarded and nothing answered, until the client gives up."""


Fault = Refuse | LoseAnswer | HalfAnswer | CutOff | Hang
Rule = Callable[[Request], Fault | None]

SLOW_DOWN = Refuse(503, "SlowDown")
INTERNAL_ERROR = Refuse(500, "InternalError")
EXPIRED_TOKEN = Refuse(400, "ExpiredToken")


@dataclass
class Wire:
    """The proxy; `rule` may be set at any time. `met` are the requests that met a fault, in order.

    `answered` counts the server's own answers by method, path and status.
    """

    target: str
    rule: Rule = lambda _: None
    endpoint: str = ""
    met: list[tuple[Request, Fault]] = field(default_factory=list)
    answered: Counter[tuple[str, str, int]] = field(default_factory=Counter)
    over: threading.Event = field(default_factory=threading.Event)
    _seen: Counter[tuple[str, str]] = field(default_factory=Counter)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def judge(self, method: str, path: str) -> Fault | None:
        """What happens to the next request of this kind."""
        with self._lock:
            self._seen[method, path] += 1
            request = Request(method, path, self._seen[method, path])
            fault = self.rule(request)
            if fault is not None:
                self.met.append((request, fault))
            return fault

    def note(self, method: str, path: str, status: int) -> None:
        """The server has answered."""
        with self._lock:
            self.answered[method, path, status] += 1


@contextmanager
def faulty_wire(target: str) -> Iterator[Wire]:
    """A proxy in front of the server at `target`, for the length of the block; without a rule it only forwards."""
    wire = Wire(target)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(wire))
    server.daemon_threads = True
    wire.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield wire
    finally:
        wire.over.set()
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(wire: Wire) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def serve(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length else b""
            path = unquote(urlsplit(self.path).path)
            fault = wire.judge(self.command, path)
            match fault:
                case Refuse():
                    self._answer(fault.status, fault.code, [("Content-Type", "application/xml")], fault.body())
                case Hang():
                    wire.over.wait()
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
                    wire.note(self.command, path, answer.status)
                    if fault == HalfAnswer() and content:
                        self._answer(answer.status, answer.reason, answer.getheaders(), content[: len(content) // 2])
                        self._hang_up()
                    elif fault is None:
                        self._answer(answer.status, answer.reason, answer.getheaders(), content)
                    else:
                        self._hang_up()

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = serve  # noqa: N815 - the base class's names

        def _upstream(self, body: bytes) -> http.client.HTTPConnection:
            """A connection to the server that has sent the client's head and this body."""
            at = urlsplit(wire.target)
            upstream = http.client.HTTPConnection(at.hostname or "", at.port, timeout=60)
            # Host as the client signed it.
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
                    length = value  # of a HEAD's object, or of the whole of which this is the half
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
            """Say nothing."""

    return Handler
