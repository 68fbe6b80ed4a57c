"""Runs a statement on Trino over its HTTP API, reports its progress, cancels it, and translates failures for Athena.

executions.py has the states and ids of query executions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit

from requests import PreparedRequest, Response, Session
from requests.adapters import HTTPAdapter
from tenacity import Retrying, retry_if_exception, stop_after_delay, wait_fixed
from trino.auth import JWTAuthentication
from trino.client import ClientSession, TrinoQuery, TrinoRequest
from trino.exceptions import HttpError, TrinoConnectionError, TrinoQueryError

from infra.local.aws_api.athena.result_columns import Column
from infra.local.components.trino import FORWARDED, USER

T = TypeVar("T")

# For up to five seconds after its start Trino accepts queries but does not yet count itself as a worker. A query
# that fails with NO_NODES_AVAILABLE is retried for at most WORKER_WAIT_SECONDS; in Athena, queries wait for capacity.
NO_WORKER = "NO_NODES_AVAILABLE"
WORKER_WAIT_SECONDS = 20
# AthenaError.ErrorCategory
SYSTEM, USER_ERROR, OTHER = 1, 2, 3


class QueryStopped(Exception):  # noqa: N818 - not an error: a caller stopped the query
    """The query was cancelled because its execution was stopped."""


class QueryFailed(Exception):  # noqa: N818 - Athena's name for the state
    """The query failed; the message is Athena's StateChangeReason."""

    def __init__(self, reason: str, category: int, *, retryable: bool = False) -> None:
        super().__init__(reason)
        self.category = category
        self.retryable = retryable


@dataclass
class Progress:
    """Trino's statistics of a query so far; times in milliseconds."""

    scanned_bytes: int = 0
    queued_ms: int = 0
    planning_ms: int = 0
    elapsed_ms: int = 0

    def update(self, stats: dict[str, Any]) -> None:
        """Set the values from Trino's statement statistics."""
        self.scanned_bytes = stats.get("physicalInputBytes", 0)
        self.queued_ms = stats.get("queuedTimeMillis", 0)
        self.planning_ms = stats.get("planningTimeMillis", 0)
        self.elapsed_ms = stats.get("elapsedTimeMillis", 0)


@dataclass(frozen=True)
class Outcome:
    """The result of a statement: its rows, which can be read once, or the number of rows it has written."""

    columns: list[Column]
    rows: Iterator[list[Any]] = field(repr=False)
    update_count: int | None


class _TlsProxy(HTTPAdapter):
    """Adds the header of a proxy that terminates TLS, and sends the request over plain HTTP.

    Trino authenticates clients only over TLS or behind such a proxy. Its responses then contain https addresses.
    """

    def send(self, request: PreparedRequest, *arguments: Any, **options: Any) -> Response:  # noqa: ANN401 - base class
        request.url = str(request.url).replace("https:", "http:", 1)
        request.headers.update(FORWARDED)
        return super().send(request, *arguments, **options)


class Trino:
    """A Trino server at a URL like `http://127.0.0.1:8080`, and the token of its user."""

    def __init__(self, url: str, token: str) -> None:
        self._token = token
        parts = urlsplit(url)
        if not parts.hostname or not parts.port:
            raise ValueError(
                f"Cannot use {url!r} as Trino's URL: it needs a host and a port, like http://127.0.0.1:8080."
            )
        self._host, self._port = parts.hostname, parts.port

    def run(
        self,
        sql: str,
        *,
        catalog: str,
        schema: str | None,
        codec: str | None = None,
        progress: Progress,
        stopped: Callable[[], bool],
    ) -> Outcome:
        """Run a statement; return when the first rows are available. Trino continues while the caller reads rows.

        A statement that writes files compresses them with `codec`.

        Raises:
            QueryStopped: `stopped` returned true (also while the rows are read).
            QueryFailed: Trino rejected the statement, failed, or cannot be reached (also while the rows are read).
        """
        retrying = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, QueryFailed) and str(error).startswith(NO_WORKER)),
            stop=stop_after_delay(WORKER_WAIT_SECONDS),
            wait=wait_fixed(0.5),
            reraise=True,
        )
        session = ClientSession(user=USER, catalog=catalog, schema=schema, source="athena", timezone="UTC")
        if codec is not None:
            session.properties[f"{catalog}.compression_codec"] = codec
        return retrying(self._run_once, sql, session, progress, stopped)

    def _run_once(self, sql: str, session: ClientSession, progress: Progress, stopped: Callable[[], bool]) -> Outcome:
        def on_stats(stats: dict[str, Any]) -> None:
            progress.update(stats)
            if stopped():
                query.cancel()
                raise QueryStopped

        http = Session()
        http.trust_env = False
        http.mount("https://", _TlsProxy())
        authentication = JWTAuthentication(self._token)
        request = TrinoRequest(
            self._host, self._port, session, http_scheme="https", http_session=http, auth=authentication
        )
        # Keep Trino's JSON values: Athena formats results in nearly the same way.
        query = TrinoQuery(request, sql, legacy_primitive_types=True, stats_callback=on_stats)
        result = _translated(query.execute)
        columns = [Column(each["name"], each["typeSignature"]) for each in _translated(lambda: query.columns) or []]
        if query.update_type is not None:
            return Outcome([], iter(()), query.update_count)
        return Outcome(columns, _rows(iter(result)), None)


def _rows(result: Iterator[list[Any]]) -> Iterator[list[Any]]:
    end: list[Any] = []
    while (row := _translated(lambda: next(result, end))) is not end:
        yield row


def _translated(call: Callable[[], T]) -> T:
    try:
        return call()
    except TrinoQueryError as error:
        is_user_error = error.error_type == "USER_ERROR"
        raise QueryFailed(f"{error.error_name}: {error.message}", USER_ERROR if is_user_error else SYSTEM) from error
    except (TrinoConnectionError, HttpError) as error:
        reason = f"INTERNAL_ERROR: the query engine did not answer: {error}"
        raise QueryFailed(reason, SYSTEM, retryable=True) from error
