"""PostgreSQL as a Dagster resource; most of its methods are functions of the other modules in this folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import dagster as dg
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case
from pydantic import Field
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from resources.aws.secrets import DatabaseSecret, SecretLogin
from resources.errors import ResourceError, Unreachable
from resources.postgres import (
    grants,
    polling,
    publications,
    server_identity,
    slots,
    table_columns,
    table_files,
    table_queries,
    transactions,
    truncate_trigger,
)
from resources.postgres.connection import Login, open_connection
from resources.postgres.internal_tables import heartbeat_table, internal_table, signal_table
from resources.postgres.internal_tables.internal_table import InternalTable
from resources.postgres.publications import PublicationChange, Table
from resources.postgres.table_columns import ColumnInfo, TableCatalog

_SALT = re.compile(r"[A-Za-z0-9_-]{16,128}")

P = ParamSpec("P")
T = TypeVar("T")


def _connected(
    function: Callable[Concatenate[Connection, P], T], *, autocommit: bool = True
) -> Callable[Concatenate[Postgres, P], T]:
    """Convert a function of a connection to a method that opens the connection."""

    @wraps(function)
    def method(self: Postgres, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self.connect(autocommit=autocommit) as connection:
            return function(connection, *args, **kwargs)

    return method


class Postgres(dg.ConfigurableResource):  # type: ignore[type-arg]
    """A PostgreSQL server and one of its databases.

    >>> source = Postgres(host="localhost", user="postgres", password=dg.EnvVar("PGPASSWORD"), database="devdb")
    >>> source.row_count("datalake", "orders")
    829
    """

    host: str
    port: int = 5432
    user: str
    password: str = Field(default="", repr=False, description="Bind an EnvVar: a literal is shown in Dagster's UI.")
    secret: DatabaseSecret | None = Field(default=None, description="A secret with the login, instead of `user`.")
    database: str
    capture_role: str = Field(
        default="",
        description="The role that connectors sign in as; it is granted what they need. Empty: `user`.",
    )
    hash_salt: str = Field(default="", repr=False, description="The salt of hashed columns; bind an EnvVar.")
    salt_secret: DatabaseSecret | None = Field(
        default=None, description="A secret whose password is the salt of hashed columns, instead of `hash_salt`."
    )
    hint: str = Field(default="", description="A sentence that is appended to connection errors.")
    connect_timeout_seconds: int = Field(
        default=5, gt=1, description="The timeout of an attempt to connect. At least 2: libpq rounds 1 up."
    )
    statement_timeout_seconds: float = Field(default=300.0, gt=0)
    attempts: int = Field(
        default=3, gt=0, description="The maximum number of attempts to connect if the server does not answer."
    )

    @contextmanager
    def connect(self, database: str | None = None, *, autocommit: bool = True) -> Iterator[Connection]:
        """Open a connection to `database` (the resource's own if None) and close it at the end.

        Without autocommit the block is one transaction: committed at its end, rolled back if it raises.

        Raises:
            Unreachable: the server did not answer.
            AccessRefused: the server rejects the user or the password.
            DatabaseMissing: the server has no such database.
        """
        retrying = Retrying(
            stop=stop_after_attempt(self.attempts),
            wait=wait_exponential(multiplier=0.2, max=2),
            retry=retry_if_exception_type(Unreachable),
            reraise=True,
        )

        def opened(found: SecretLogin | None = None) -> Connection:
            return retrying(open_connection, self._login(found), database or self.database)

        with closing(opened() if self.secret is None else self.secret.use_login(opened)) as connection:
            if autocommit:
                connection.autocommit = True
                yield connection
            else:
                with connection:
                    yield connection

    def login(self) -> Login:
        """Return the current login, for callers that open connections. Raises what DatabaseSecret.login() raises."""
        return self._login(None if self.secret is None else self.secret.login())

    def _login(self, found: SecretLogin | None = None) -> Login:
        # Outside of Dagster, EnvVars are not resolved.
        password = self.password.get_value() if isinstance(self.password, dg.EnvVar) else self.password
        return Login(
            host=self.host,
            port=self.port,
            # If Secrets Manager rotates between two users, the secret contains the current one.
            user=self.user if found is None else found.username or self.user,
            password=(password or "") if found is None else found.password,
            connect_timeout_seconds=self.connect_timeout_seconds,
            statement_timeout_seconds=self.statement_timeout_seconds,
            hint=self.hint,
        )

    def salt(self) -> str:
        """Return the salt of hashed columns.

        Raises ResourceError if it is missing, too short or too long, or has characters that a connector's setting
        cannot contain. Raises what DatabaseSecret.login() raises.
        """
        own = self.hash_salt.get_value() if isinstance(self.hash_salt, dg.EnvVar) else self.hash_salt
        found = (own or "") if self.salt_secret is None else self.salt_secret.login().password
        if not _SALT.fullmatch(found):
            raise ResourceError(
                f"Cannot hash columns: the salt of this deployment is {'not valid' if found else 'missing'}.",
                "Set the variable CDC_LAKE_HASH_SALT, or on AWS the secret in CDC_LAKE_HASH_SALT_SECRET, to 16 to 128 "
                "letters, digits, '-' and '_', such as the output of `python -c 'import secrets; "
                "print(secrets.token_urlsafe(32))'`.",
            )
        return found

    columns = _connected(table_columns.columns)
    unsupported_dates = _connected(table_columns.unsupported_dates)
    publishes_generated = _connected(table_columns.publishes_generated)
    has_values = _connected(table_columns.has_values)

    files = _connected(table_files.table_files)

    row_count = _connected(table_queries.row_count)
    replica_identity = _connected(table_queries.replica_identity)
    set_replica_identity = _connected(table_queries.set_replica_identity)
    truncatable = _connected(truncate_trigger.truncatable)
    refuse_truncate = _connected(truncate_trigger.refuse_truncate, autocommit=False)

    sequence = _connected(polling.sequence)
    has_index = _connected(polling.has_index)
    has_unique_key = _connected(polling.has_unique_key)
    has_offset_changes = _connected(polling.has_offset_changes)
    query_columns = _connected(polling.query_columns)
    finds_row = _connected(polling.finds_row)
    count = _connected(polling.count)

    identity = _connected(server_identity.server)
    publication = _connected(publications.publication)
    publication_identity = _connected(server_identity.publication)
    slot = _connected(slots.slot)
    drop_slot = _connected(slots.drop_slot)
    write_heartbeat = _connected(heartbeat_table.write_heartbeat)
    request_snapshot = _connected(signal_table.request_snapshot)
    new_xid = _connected(transactions.new_xid)
    oldest_open_xid = _connected(transactions.oldest_open_xid)

    def current_lsn(self) -> int:
        """Return the end of the WAL."""
        return self.identity().lsn

    def columns_by_table(self, schema: str, tables: Iterable[str]) -> dict[str, tuple[ColumnInfo, ...]]:
        """Return the columns of several tables over one connection; raise TableMissing if one does not exist."""
        with self.connect() as connection:
            return {table: table_columns.columns(connection, schema, table) for table in tables}

    def catalog(self, schema: str, table: str) -> TableCatalog:
        """Return a consistent description of the table from the catalog; raise TableMissing if it does not exist."""
        with self.connect(autocommit=False) as connection:
            connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
            return table_columns.catalog(connection, schema, table)

    def transactions_bound(self) -> polling.TransactionsBound:
        """Return a time before which every transaction that began has ended or is prepared.

        Raises AccessRefused and ResourceError.
        """
        with self.connect() as connection:
            return polling.transactions_bound(connection, self.capture_role or self.login().user)

    def ensure_publication(self, name: str, tables: Iterable[Table]) -> PublicationChange:
        """Create or extend the publication, and grant the capture role SELECT on the tables; return the change."""
        wanted = tuple(tables)
        with self.connect(autocommit=False) as connection:
            change = publications.ensure_publication(connection, name, wanted)
            if self.capture_role:
                grants.grant(connection, self.capture_role, wanted, ["select"])
        return change

    def ensure_internal_table(self, schema: str, table: InternalTable) -> bool:
        """Create a pipeline's table, and grant the capture role its privileges; return whether it was missing."""
        with self.connect(autocommit=False) as connection:
            return internal_table.ensure(connection, schema, table, self.capture_role)
