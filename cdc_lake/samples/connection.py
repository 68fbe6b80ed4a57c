"""Connect to the PostgreSQL server that a sample is loaded into. Assets use resources/postgres/resource.py instead."""

from __future__ import annotations

from dataclasses import dataclass, field

import psycopg2
from psycopg2.extensions import connection

from cdc_lake.samples.errors import ConnectError

CONNECT_TIMEOUT_SECONDS = 10


@dataclass(frozen=True)
class ConnectionParameters:
    """A database on a server, and the login."""

    host: str
    port: int
    dbname: str
    user: str
    password: str = field(repr=False)

    def __str__(self) -> str:
        return f"database {self.dbname} on {self.host}:{self.port} as user {self.user}"

    def connect(self) -> connection:
        """Open a connection.

        Raises ConnectError if the server cannot be reached, rejects the user, or does not have the database.
        """
        try:
            return psycopg2.connect(
                host=self.host,
                port=self.port,
                dbname=self.dbname,
                user=self.user,
                password=self.password,
                connect_timeout=CONNECT_TIMEOUT_SECONDS,
                application_name="cdc-lake load",
                client_encoding="UTF8",
            )
        except psycopg2.OperationalError as error:
            message = str(error).strip()
            raise ConnectError(f"Cannot connect to {self}: {message}\n{_advice(message)}") from error


def _advice(message: str) -> str:
    """Return advice for a failed connection. The message's words decide, because libpq returns no error code."""
    if "password" in message:
        return "Check the user and the password (if PGPASSWORD is set, it is used instead of a prompt)."
    if "database" in message and "does not exist" in message:
        return "Create the database first, or choose another with --dbname."
    if "pg_hba.conf" in message:
        return "Allow this user and address in the server's pg_hba.conf."
    return "Check --host and --port, and that the server is running and listens there."
