"""A WSGI application at an address of its own, for the length of a block; the keys of clients of the local AWS APIs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

from werkzeug.serving import make_server

from infra.local.aws_endpoint.signature import Signatures

SIGNED = Signatures("key", "secret")
"""The keys that clients of a Gate in a unit test sign with."""


@contextmanager
def listening(application: Any) -> Iterator[str]:  # noqa: ANN401 - WSGI
    """The application's URL, without a slash at its end."""
    server = make_server("127.0.0.1", 0, application, threaded=True)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
