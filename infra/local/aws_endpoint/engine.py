"""Athena's engine here: Trino, over its HTTP API.

Here: running one statement, following its progress, ending it when it was stopped, and its failure in
Athena's words.
Not here: states and ids of executions (executions.py).
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

from infra.local.aws_endpoint.columns import Column
from infra.local.components.trino import USER

T = TypeVar("T")

# For up to five seconds after its start a server takes queries without counting itself as a worker for its
# catalogs. Athena lets a query wait for capacity, and so it is here.
NO_WORKER = "NO_NODES_AVAILABLE"
WORKER_WITHIN_SECONDS = 20
# AthenaError.ErrorCategory
SYSTEM, USER_ERROR, OTHER = 1, 2, 3


class QueryStopped(Exception):  # noqa: N818 - it is no error: somebody asked for it
    """The query was ended because its execution was stopped."""


class QueryFailed(Exception):  # noqa: N818 - Athena's word for the state
    """The query failed; the reason is what Athena gives for the change of state."""

    def __init__(self, reason: str, category: int, *, retryable: bool = False) -> None:
        super().__init__(reason)
        self.category = category
        self.retryable = retryable


@dataclass
class Progress:
    """What Trino has told of a query so far; times in milliseconds."""

    scanned_bytes: int = 0
    queued_ms: int = 0
    planning_ms: int = 0
    elapsed_ms: int = 0

    def update(self, stats: dict[str, Any]) -> None:
        """Take over the figures of Trino's statement statistics."""
        self.scanned_bytes = stats.get("physicalInputBytes", 0)
        self.queued_ms = stats.get("queuedTimeMillis", 0)
        self.planning_ms = stats.get("planningTimeMillis", 0)
        self.elapsed_ms = stats.get("elapsedTimeMillis", 0)


@dataclass(frozen=True)
class Outcome:
    """A finished statement: rows (to be read once) and, for statements that write, their count."""

    columns: list[Column]
    rows: Iterator[list[Any]] = field(repr=False)
    update_count: int | None


class _BehindProxy(HTTPAdapter):
    """Sends what a proxy in front of Trino would that ends TLS: Trino authenticates no client whose request comes
    without TLS, and its answers contain https addresses.
    """

    def send(self, request: PreparedRequest, *arguments: Any, **options: Any) -> Response:  # noqa: ANN401 - as there
        request.url = str(request.url).replace("https:", "http:", 1)
        request.headers["X-Forwarded-Proto"] = "https"
        return super().send(request, *arguments, **options)


class Trino:
    """A Trino server at an address like `http://127.0.0.1:8080`, and the token of its user."""

    def __init__(self, url: str, token: str) -> None:
        self._token = token
        parts = urlsplit(url)
        if not parts.hostname or not parts.port:
            raise ValueError(f"A Trino address like http://127.0.0.1:8080 is needed, not {url!r}.")
        self._host, self._port = parts.hostname, parts.port

    def run(
        self,
        sql: str,
        *,
        catalog: str,
        schema: str | None,
        progress: Progress,
        stopped: Callable[[], bool],
    ) -> Outcome:
        """Run a statement up to its first rows; the rest comes while the rows are read.

        Raises:
            QueryStopped: `stopped` became true (also while the rows are read).
            QueryFailed: Trino refused or failed, or can't be reached (also while the rows are read).
        """
        retrying = Retrying(
            retry=retry_if_exception(lambda error: isinstance(error, QueryFailed) and str(error).startswith(NO_WORKER)),
            stop=stop_after_delay(WORKER_WITHIN_SECONDS),
            wait=wait_fixed(0.5),
            reraise=True,
        )
        session = ClientSession(user=USER, catalog=catalog, schema=schema, source="athena", timezone="UTC")
        return retrying(self._run_once, sql, session, progress, stopped)

    def _run_once(self, sql: str, session: ClientSession, progress: Progress, stopped: Callable[[], bool]) -> Outcome:
        def watch(stats: dict[str, Any]) -> None:
            progress.update(stats)
            if stopped():
                query.cancel()
                raise QueryStopped

        http = Session()
        http.trust_env = False
        http.mount("https://", _BehindProxy())
        authentication = JWTAuthentication(self._token)
        request = TrinoRequest(
            self._host, self._port, session, http_scheme="https", http_session=http, auth=authentication
        )
        # Raw values: Athena's texts are nearer to Trino's JSON than to Python's types.
        query = TrinoQuery(request, sql, legacy_primitive_types=True, stats_callback=watch)
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
        is_users = error.error_type == "USER_ERROR"
        raise QueryFailed(f"{error.error_name}: {error.message}", USER_ERROR if is_users else SYSTEM) from error
    except (TrinoConnectionError, HttpError) as error:
        reason = f"INTERNAL_ERROR: the query engine did not answer: {error}"
        raise QueryFailed(reason, SYSTEM, retryable=True) from error
