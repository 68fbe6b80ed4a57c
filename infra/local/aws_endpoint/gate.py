"""The front door of the endpoint: which requests reach moto at all.

Here: the WSGI application that lets signed requests for the offered services and the one region pass,
and refuses everything else, moto's own control API (which could wipe the catalog) included.
Not here: what the services answer. Signatures are verified for the services that tell secrets only
(signature.py): the endpoint listens on the loopback interface, and the rest of what it tells is no secret there.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from infra.local.aws_endpoint.errors import JSON, XML, AwsError

Environ = dict[str, Any]


class StartResponse(Protocol):
    """WSGI's callable that begins the answer."""

    def __call__(self, status: str, headers: list[tuple[str, str]], /) -> object: ...


Application = Callable[[Environ, StartResponse], Iterable[bytes]]

OFFERED_SERVICES = frozenset({"athena", "glue", "sts"})
SECRET_SERVICES = frozenset({"secretsmanager"})
"""Offered where signatures can be verified."""

# AWS4-HMAC-SHA256 Credential=<key>/<date>/<region>/<service>/aws4_request, …
_SCOPE = re.compile(r"Credential=[^/,\s]+/\d{8}/(?P<region>[^/,\s]+)/(?P<service>[^/,\s]+)/aws4_request")


class Gate:
    """Passes on what this endpoint serves, to moto or to an application of the service's own, and answers the rest."""

    def __init__(
        self,
        application: Application,
        region: str,
        own: Mapping[str, Application] | None = None,
        is_signed: Callable[[Environ], bool] | None = None,
    ) -> None:
        self._application = application
        self._region = region
        self._own = own or {}
        self._is_signed = is_signed

    def __call__(self, environ: Environ, start_response: StartResponse) -> Iterable[bytes]:
        scope = _SCOPE.search(environ.get("HTTP_AUTHORIZATION", ""))
        error = self._objection(environ, scope)
        if error is None:
            service = "" if scope is None else scope["service"]
            return self._own.get(service, self._application)(environ, start_response)
        is_json = environ.get("CONTENT_TYPE", "").startswith("application/x-amz-json")
        body = (error.as_json() if is_json else error.as_xml()).encode()
        # The request's body was not read, so the connection can't be used again.
        headers = [("Content-Type", JSON if is_json else XML), ("Connection", "close")]
        start_response(f"{error.status} {error.code}", [*headers, ("Content-Length", str(len(body)))])
        return [body]

    def _objection(self, environ: Environ, scope: re.Match[str] | None) -> AwsError | None:
        if scope is None or environ.get("PATH_INFO", "").startswith("/moto-api"):
            return AwsError("MissingAuthenticationTokenException", "Missing Authentication Token", status=403)
        offered = OFFERED_SERVICES | self._own.keys() | (SECRET_SERVICES if self._is_signed else frozenset())
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
        if scope["service"] in SECRET_SERVICES and self._is_signed is not None and not self._is_signed(environ):
            return AwsError(
                "InvalidSignatureException",
                "The request signature does not match the stack's keys: `cdc-lake env --show-secrets` tells them.",
                status=403,
            )
        return None
