"""The ASGI middleware that rejects requests from other web pages, by Host, Origin and GraphQL's content type."""

from __future__ import annotations

from urllib.parse import urlsplit

from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

_HOSTS = ("127.0.0.1", "localhost")
_GRAPHQL_TYPES = frozenset({"application/json", "application/graphql"})
"""A page of another origin can send these types only after a CORS preflight, which Dagster does not answer."""


class OwnPagesOnly:
    """Pass on requests from Dagster's pages and from programs; answer others, including websockets, with 400 or 403.

    - Host must be a name of the loopback interface, with any port. A page that rebinds its own host name to the
      loopback address (DNS rebinding) sends that host name.
    - Origin, if present, must be this server's.
    - GraphQL must be sent by POST as JSON: a link or an image of any page can send a GET without an Origin.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = TrustedHostMiddleware(app, _HOSTS, www_redirect=False)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Reject the request, or pass it to the application."""
        fault = _fault(HTTPConnection(scope)) if scope["type"] in {"http", "websocket"} else None
        answer = self._app if fault is None else PlainTextResponse(fault, status_code=403)
        await answer(scope, receive, send)


def _fault(request: HTTPConnection) -> str | None:
    host = request.headers.get("host", "")
    for origin in request.headers.getlist("origin"):
        if urlsplit(origin).netloc != host:
            return f"Cannot answer a page of {origin} at {host}. Open the address of Dagster's UI itself."
    if request.scope["type"] == "http" and request.url.path.endswith("/graphql") and not _is_page_or_json(request):
        return "Cannot run a GraphQL operation that is not JSON. Send it by POST as application/json."
    return None


def _is_page_or_json(request: HTTPConnection) -> bool:
    """Return whether the request sends JSON, or requests GraphiQL's page, for which Dagster runs no operation."""
    if request.scope["method"] == "POST":
        return request.headers.get("content-type", "").partition(";")[0].strip().lower() in _GRAPHQL_TYPES
    return "text/html" in request.headers.get("accept", "")
