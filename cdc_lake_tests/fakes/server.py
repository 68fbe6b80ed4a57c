"""Functions that serve a WSGI application, or AWS services, on a free port in the test's process."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import Any

from werkzeug.serving import BaseWSGIServer, make_server

from infra.local.aws_api.server import Application, make_aws_server
from infra.local.aws_api.signatures import SigningKeys

KEYS = SigningKeys("key", "secret")
"""The access keys of clients in unit tests."""


@contextmanager
def listening(application: Any) -> Iterator[str]:  # noqa: ANN401 - WSGI
    """Serve a WSGI application; yield its URL without a trailing slash."""
    with _running(make_server("127.0.0.1", 0, application, threaded=True)) as url:
        yield url


@contextmanager
def serving(services: Mapping[str, Application], region: str = "us-east-1", keys: SigningKeys = KEYS) -> Iterator[str]:
    """Serve AWS services at one URL, which is yielded; the signature of a request names its service."""
    with _running(make_aws_server(0, services, region, keys)) as url:
        yield url


@contextmanager
def _running(server: BaseWSGIServer) -> Iterator[str]:
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
