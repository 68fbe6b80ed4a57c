"""The server of the local AWS API: it dispatches signed requests to its services and rejects all others.

It rejects requests that are not signed with the stack's keys, requests for other services and regions, and requests
from web pages (with another Host, or with an Origin). signatures.py verifies signatures.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from werkzeug.exceptions import SecurityError
from werkzeug.serving import BaseWSGIServer, make_server
from werkzeug.wsgi import get_host

from infra.local.aws_api.errors import JSON, XML, AwsError
from infra.local.aws_api.signatures import SigningKeys

LOOPBACK = "127.0.0.1"
HOSTS = (LOOPBACK, "localhost")
"""The accepted Host headers. A web page that attacks by DNS rebinding sends its own host name."""

Environ = dict[str, Any]


class StartResponse(Protocol):
    """WSGI's callable that starts the answer."""

    def __call__(self, status: str, headers: list[tuple[str, str]], /) -> object: ...


Application = Callable[[Environ, StartResponse], Iterable[bytes]]
"""A WSGI application."""

# AWS4-HMAC-SHA256 Credential=<key>/<date>/<region>/<service>/aws4_request, …
_SCOPE = re.compile(r"Credential=[^/,\s]+/\d{8}/(?P<region>[^/,\s]+)/(?P<service>[^/,\s]+)/aws4_request")


def make_aws_server(port: int, services: Mapping[str, Application], region: str, keys: SigningKeys) -> BaseWSGIServer:
    """Return a server on the loopback interface; `services` maps signed service names to applications.

    With port 0 the system chooses a port (`server_port`).
    """
    return make_server(LOOPBACK, port, AwsServices(services, region, keys), threaded=True)


class AwsServices:
    """A WSGI application that dispatches a request to the service it is signed for."""

    def __init__(self, services: Mapping[str, Application], region: str, keys: SigningKeys) -> None:
        self._services, self._region, self._keys = services, region, keys

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        scope = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
        try:
            service = self._service(environ, scope)
        except AwsError as error:
            return _refusal(environ, error, start_response)
        return service(environ, start_response)

    def _service(self, environ: Environ, scope: re.Match[str] | None) -> Application:
        """Return the service that answers the request. Raises AwsError if the request must not reach it."""
        if not _is_from_a_program(environ):
            raise AwsError(
                "AccessDeniedException",
                "The request comes from a web page or names another host (Host: "
                f"{environ.get('HTTP_HOST')!r}, Origin: {environ.get('HTTP_ORIGIN')!r}). "
                f"Send it from a program, to http://{LOOPBACK}:{environ['SERVER_PORT']}.",
                status=403,
            )
        # Under this path moto has a control API, with which a caller could delete all data.
        if scope is None or environ.get("PATH_INFO", "").startswith("/moto-api"):
            raise AwsError("MissingAuthenticationTokenException", "Missing Authentication Token", status=403)
        if scope["service"] not in self._services:
            raise AwsError(
                "UnknownOperationException",
                f"The local AWS API does not have the service {scope['service']}, only "
                f"{', '.join(sorted(self._services))}. Send the request to another endpoint_url.",
            )
        if scope["region"] != self._region:
            raise AwsError(
                "InvalidSignatureException",
                f"Credential should be scoped to a valid region: the local AWS API is in "
                f"{self._region!r}, but the request is signed for {scope['region']!r}.",
            )
        if not self._keys.signed(environ):
            raise AwsError(
                "InvalidSignatureException",
                "The request signature does not match the stack's keys, which `cdc-lake env --show-secrets` prints.",
                status=403,
            )
        return self._services[scope["service"]]


def _refusal(environ: Environ, error: AwsError, start_response: StartResponse) -> Iterable[bytes]:
    is_json = "json" in environ.get("CONTENT_TYPE", "")
    body = (error.as_json() if is_json else error.as_xml()).encode()
    headers = [
        ("Content-Type", JSON if is_json else XML),
        ("Content-Length", str(len(body))),
        ("Connection", "close"),  # the request's body was not read, so the connection cannot be used again
        ("x-amzn-ErrorType", error.code),
    ]
    start_response(f"{error.status} {error.code}", headers)
    return [body]


def _is_from_a_program(environ: Environ) -> bool:
    """Return whether the request names one of the accepted hosts and has no Origin, which web pages send."""
    try:
        get_host(environ, HOSTS)
    except SecurityError:
        return False
    return "HTTP_ORIGIN" not in environ
