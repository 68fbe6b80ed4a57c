"""The front door of the endpoint: which requests reach a service at all.

Here: the WSGI application that passes on requests that are signed with the stack's keys, for the offered services
and the one region, and refuses all others: those of a web page (another Host, an Origin) and moto's own control
API, which could delete the catalog, among them.
Not here: how a signature is verified (signature.py), and what the services answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from werkzeug.exceptions import SecurityError
from werkzeug.wsgi import get_host

from infra.local.aws_endpoint.errors import JSON, XML, AwsError

Environ = dict[str, Any]


class StartResponse(Protocol):
    """WSGI's callable that begins the answer."""

    def __call__(self, status: str, headers: list[tuple[str, str]], /) -> object: ...


Application = Callable[[Environ, StartResponse], Iterable[bytes]]

OFFERED_SERVICES = frozenset({"athena", "glue", "secretsmanager", "sts"})
"""moto's; the others are applications of our own."""

HOSTS = ("127.0.0.1", "localhost")
"""The names that the endpoint is called by; a page that rebinds its own name to the loopback sends that name."""

_REST_JSON = frozenset({"emr-serverless", "kafka", "kafkaconnect", "quicksight"})
"""Services whose requests may have no body, and so no type, and whose errors are JSON."""

# AWS4-HMAC-SHA256 Credential=<key>/<date>/<region>/<service>/aws4_request, …
_SCOPE = re.compile(r"Credential=[^/,\s]+/\d{8}/(?P<region>[^/,\s]+)/(?P<service>[^/,\s]+)/aws4_request")


class Gate:
    """Passes on what this endpoint serves, to moto or to an application of the service's own, and answers the rest.

    `is_signed` verifies a request's signature.
    """

    def __init__(
        self,
        application: Application,
        region: str,
        is_signed: Callable[[Environ], bool],
        own: Mapping[str, Application] | None = None,
    ) -> None:
        self._application = application
        self._region = region
        self._is_signed = is_signed
        self._own = own or {}

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        scope = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
        error = self._objection(environ, scope)
        if error is None:
            service = "" if scope is None else scope["service"]
            return self._own.get(service, self._application)(environ, start_response)
        is_json = "json" in environ.get("CONTENT_TYPE", "") or (scope is not None and scope["service"] in _REST_JSON)
        body = (error.as_json() if is_json else error.as_xml()).encode()
        # The request's body was not read, so the connection can't be used again.
        headers = [
            ("Content-Type", JSON if is_json else XML),
            ("Connection", "close"),
            ("x-amzn-ErrorType", error.code),
        ]
        start_response(f"{error.status} {error.code}", [*headers, ("Content-Length", str(len(body)))])
        return [body]

    def _objection(self, environ: Environ, scope: re.Match[str] | None) -> AwsError | None:
        if not _is_local(environ):
            return AwsError(
                "AccessDeniedException",
                "Cannot answer a request of a web page or for another host: its Host is "
                f"{environ.get('HTTP_HOST')!r}, its Origin {environ.get('HTTP_ORIGIN')!r}. "
                f"Call http://{HOSTS[0]} from a program.",
                status=403,
            )
        if scope is None or environ.get("PATH_INFO", "").startswith("/moto-api"):
            return AwsError("MissingAuthenticationTokenException", "Missing Authentication Token", status=403)
        offered = OFFERED_SERVICES | self._own.keys()
        if scope["service"] not in offered:
            return AwsError(
                "UnknownOperationException",
                f"{scope['service']} is not offered by the local AWS endpoint, which has "
                f"{', '.join(sorted(offered))}. Was this call meant for another endpoint_url?",
            )
        if scope["region"] != self._region:
            return AwsError(
                "InvalidSignatureException",
                f"Credential should be scoped to a valid region: the local AWS endpoint is "
                f"{self._region!r}, the call is signed for {scope['region']!r}.",
            )
        if not self._is_signed(environ):
            return AwsError(
                "InvalidSignatureException",
                "The request signature does not match the stack's keys: `cdc-lake env --show-secrets` prints them.",
                status=403,
            )
        return None


def _is_local(environ: Environ) -> bool:
    """Whether a program sent it to one of our names. A web page's requests carry its Origin, and we serve no page."""
    try:
        get_host(environ, HOSTS)
    except SecurityError:
        return False
    return "HTTP_ORIGIN" not in environ
