"""How a sample reaches a PostgreSQL server.

Not here: the embedded stack's own server (infra/local) and the resource that the assets use (resources).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import psycopg2
from psycopg2.extensions import connection

from cdc_lake.samples.errors import LoadError

CONNECT_TIMEOUT_SECONDS = 10


@dataclass(frozen=True)
class ConnectionParameters:
    """One database on one server, and whose rights to use there."""

    host: str
    port: int
    dbname: str
    user: str
    password: str = field(repr=False)

    def __str__(self) -> str:
        return f"database {self.dbname} on {self.host}:{self.port} as user {self.user}"

    def connect(self) -> connection:
        """An open connection of its own.

        Raises LoadError if the server can't be reached, refuses the user, or has no such database.
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
            said = str(error).strip()
            raise LoadError(f"Can't connect to {self}: {said}\n{_what_to_do(said)}") from error


def _what_to_do(said: str) -> str:
    """libpq gives no error code for a connection that failed, so the advice goes by its words."""
    if "password" in said:
        return "Check the user and the password (PGPASSWORD, where it is set, is used instead of asking)."
    if "database" in said and "does not exist" in said:
        return "Create the database first, or name another with --dbname."
    if "pg_hba.conf" in said:
        return "The server's pg_hba.conf does not let this user in from here."
    return "Check --host and --port, and that the server runs and listens there."
