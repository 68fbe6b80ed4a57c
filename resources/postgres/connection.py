"""Opens connections to PostgreSQL and translates connection errors to ResourceErrors."""

from __future__ import annotations

from dataclasses import dataclass, field

import psycopg2
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from resources.errors import AccessRefused, DatabaseMissing, ResourceError, Unreachable

_REFUSALS = ("authentication failed", "no pg_hba.conf entry", "no password supplied", "FATAL:  role ")


@dataclass(frozen=True)
class Login:
    """Address, user, password and timeouts of a connection; `hint` is the advice in its errors."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    connect_timeout_seconds: int
    statement_timeout_seconds: float
    hint: str


def open_connection(login: Login, database: str) -> Connection:
    """Return a new connection.

    Raises:
        Unreachable: the server did not answer, is starting, or rejects the connection for another reason.
        AccessRefused: the server rejects the user or the password.
        DatabaseMissing: the server has no such database.
    """
    try:
        return psycopg2.connect(
            host=login.host,
            port=login.port,
            user=login.user,
            password=login.password,
            dbname=database,
            connect_timeout=login.connect_timeout_seconds,
            application_name="cdc-lake",
            options=f"-c statement_timeout={int(login.statement_timeout_seconds * 1000)}",
        )
    except psycopg2.OperationalError as error:
        raise _translated(error, login, database) from error


def _translated(error: psycopg2.OperationalError, login: Login, database: str) -> ResourceError:
    # A failed connection has no SQLSTATE, so the cause is recognized by libpq's message.
    text = str(error).strip()
    # "connection to server at "host", port 1 failed: reason"
    reason = text.splitlines()[0].rpartition(" failed: ")[2] if text else "no reason given"
    server = f"PostgreSQL at {login.host}:{login.port}"
    if f'database "{database}" does not exist' in text:
        message = f"Cannot connect to database {database}: {server} has no such database."
        return DatabaseMissing(message, "Create the database and the tables to capture.")
    if any(refusal in text for refusal in _REFUSALS):
        return AccessRefused(f"Cannot connect to {server}: it rejects user {login.user} ({reason}).", login.hint)
    return Unreachable(f"Cannot connect to {server}: {reason}.", login.hint)
