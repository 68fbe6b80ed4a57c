"""An HTTP proxy in front of an S3 server that forwards a put and then loses its answer, as a network can.

Here: one fault of the wire. Not here: what a client makes of it (contract/conditional.py).
"""

from __future__ import annotations

import http.client
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import urlsplit

_HOP_BY_HOP = {"connection", "keep-alive", "transfer-encoding", "content-length"}


@dataclass
class LossyWire:
    """The proxy: the answer of each key's first successful put is lost.

    `lost` are the paths whose answers were, `refused` those of the retries that the server then answered with 412.
    """

    target: str
    endpoint: str = ""
    lost: list[str] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def loses(self, method: str, path: str, status: int) -> bool:
        """Whether this answer is lost; notes it."""
        with self.lock:
            if method != "PUT":
                return False
            if status == http.client.PRECONDITION_FAILED and path in self.lost:
                self.refused.append(path)
            if status != http.client.OK or path in self.lost:
                return False
            self.lost.append(path)
            return True


@contextmanager
def lossy_wire(target: str) -> Iterator[LossyWire]:
    """A proxy in front of the server at `target`, for the length of the block."""
    wire = LossyWire(target)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(wire))
    server.daemon_threads = True
    wire.endpoint = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield wire
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(wire: LossyWire) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def forward(self) -> None:
            length = int(self.headers.get("Content-Length") or 0)
            body = self.rfile.read(length) if length else None
            at = urlsplit(wire.target)
            upstream = http.client.HTTPConnection(at.hostname or "", at.port, timeout=60)
            # Host as the client signed it.
            upstream.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() != "expect":
                    upstream.putheader(name, value)
            upstream.endheaders(body)
            answer = upstream.getresponse()
            content = answer.read()
            upstream.close()
            if wire.loses(self.command, urlsplit(self.path).path, answer.status):
                self.close_connection = True
                self.connection.close()
                return
            self.send_response_only(answer.status, answer.reason)
            for name, value in answer.getheaders():
                if name.lower() not in _HOP_BY_HOP:
                    self.send_header(name, value)
            self.send_header("Content-Length", answer.headers.get("Content-Length") or str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = forward  # noqa: N815 - the base class's names

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler
