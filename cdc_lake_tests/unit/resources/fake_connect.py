"""A fake Kafka Connect worker with responses that a test defines, over HTTP."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

Answer = tuple[int, object]


@dataclass
class FakeConnect:
    """Responses by request (`GET /connectors/x/status`), used in order; the last one is repeated.

    A body is sent as JSON, or as HTML if it is a text.
    """

    answers: dict[str, list[Answer]] = field(default_factory=dict)
    requests: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    url: str = ""
    authorization: str = ""

    def on(self, request: str, *answers: Answer) -> None:
        self.answers[request] = list(answers)

    def take(self, request: str, body: bytes) -> Answer:
        self.requests.append(request)
        self.bodies.append(body)
        left = self.answers.get(request, [(404, {"error_code": 404, "message": f"nothing for {request}"})])
        return left.pop(0) if len(left) > 1 else left[0]


def status(state: str, *tasks: str, trace: str | None = None) -> Answer:
    """Return a response with the status of a connector."""
    return 200, {
        "name": "nw",
        "connector": {"state": state, "worker_id": "w:1"},
        "tasks": [{"id": i, "state": t, "worker_id": "w:1", "trace": trace} for i, t in enumerate(tasks)],
        "type": "source",
    }


def validation(defined: Iterable[str], errors: Mapping[str, str] | None = None) -> Answer:
    """Return the validation response of a plugin with these settings and errors."""
    errors_by_name = errors or {}
    return 200, {
        "configs": [
            {
                "definition": {"name": name} if name in set(defined) else None,
                "value": {"name": name, "errors": [errors_by_name[name]] if name in errors_by_name else []},
            }
            for name in {**dict.fromkeys(defined), **errors_by_name}
        ]
    }


@contextmanager
def fake_connect() -> Iterator[FakeConnect]:
    """Start a worker on a free port."""
    fake = FakeConnect()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            fake.authorization = self.headers.get("authorization", "")
            sent = self.rfile.read(int(self.headers.get("content-length", 0)))
            code, body = fake.take(f"{self.command} {self.path}", sent)
            kind, text = ("text/html", body) if isinstance(body, str) else ("application/json", json.dumps(body))
            raw = b"" if body is None else text.encode()
            self.send_response(code)
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        do_GET = do_PUT = do_POST = do_DELETE = answer  # noqa: N815 - names of http.server

        def log_message(self, *_: object) -> None:
            """Suppress the access log."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    fake.url = f"http://127.0.0.1:{server.server_port}"
    thread = Thread(target=server.serve_forever, args=(0.01,))
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
