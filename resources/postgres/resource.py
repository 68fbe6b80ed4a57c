"""PostgreSQL, as a Dagster resource: it opens connections for the functions of this package."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from functools import wraps
from typing import Concatenate, ParamSpec, TypeVar

import dagster as dg
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case
from pydantic import Field
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from resources.aws.secrets import DatabaseSecret, SecretLogin
from resources.errors import Unreachable
from resources.postgres import (
    grants,
    heartbeat_table,
    publications,
    server_identity,
    slots,
    table_columns,
    table_queries,
    truncate_trigger,
)
from resources.postgres.connection import Login, open_connection
from resources.postgres.publications import PublicationChange, Table
from resources.postgres.table_columns import TableCatalog

P = ParamSpec("P")
T = TypeVar("T")


def _connected(
    function: Callable[Concatenate[Connection, P], T], *, autocommit: bool = True
) -> Callable[Concatenate[Postgres, P], T]:
    """Return a function of a connection as a method that opens a connection for it."""

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
    secret: DatabaseSecret | None = Field(default=None, description="Where the login is looked up instead.")
    database: str
    capture_role: str = Field(
        default="",
        description="The role that connectors sign in as, which is granted what they need; empty: the login's own.",
    )
    hint: str = Field(default="", description="A sentence that is appended to connection errors.")
    connect_timeout_seconds: int = Field(default=5, gt=1, description="libpq rounds 1 up to 2.")
    statement_timeout_seconds: float = Field(default=300.0, gt=0)
    attempts: int = Field(default=3, gt=0, description="How often to try a connection that isn't answered.")

    @contextmanager
    def connect(self, database: str | None = None, *, autocommit: bool = True) -> Iterator[Connection]:
        """Open a connection to `database` (the resource's own if None) and close it at the end.

        Without autocommit the block is one transaction: committed at its end, rolled back if it raises.

        Raises:
            Unreachable: nobody answered.
            AccessRefused: the server refuses the user or the password.
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

        with closing(opened() if self.secret is None else self.secret.signed_in(opened)) as connection:
            if autocommit:
                connection.autocommit = True
                yield connection
            else:
                with connection:
                    yield connection

    def login(self) -> Login:
        """Return the current login, for callers that connect themselves. Raises what reading a secret raises."""
        return self._login(None if self.secret is None else self.secret.login())

    def _login(self, found: SecretLogin | None = None) -> Login:
        # Outside of Dagster nobody has resolved the EnvVar.
        password = self.password.get_value() if isinstance(self.password, dg.EnvVar) else self.password
        return Login(
            host=self.host,
            port=self.port,
            # A secret that is rotated between two users names the one whose password it has.
            user=self.user if found is None else found.username or self.user,
            password=(password or "") if found is None else found.password,
            connect_timeout_seconds=self.connect_timeout_seconds,
            statement_timeout_seconds=self.statement_timeout_seconds,
            hint=self.hint,
        )

    columns = _connected(table_columns.columns)
    untellable_dates = _connected(table_columns.untellable_dates)
    publishes_generated = _connected(table_columns.publishes_generated)
    has_values = _connected(table_columns.has_values)

    row_count = _connected(table_queries.row_count)
    replica_identity = _connected(table_queries.replica_identity)
    set_replica_identity = _connected(table_queries.set_replica_identity)
    truncatable = _connected(truncate_trigger.truncatable)
    refuse_truncate = _connected(truncate_trigger.refuse_truncate, autocommit=False)

    identity = _connected(server_identity.server)
    publication = _connected(publications.publication)
    publication_identity = _connected(server_identity.publication)
    slot = _connected(slots.slot)
    drop_slot = _connected(slots.drop_slot)
    beat = _connected(heartbeat_table.beat)

    def current_lsn(self) -> int:
        """Return the end of the WAL."""
        return self.identity().lsn

    def catalog(self, schema: str, table: str) -> TableCatalog:
        """Return columns, key and storage of the table as of one moment; raise TableMissing if there is none."""
        with self.connect(autocommit=False) as connection:
            connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
            return table_columns.catalog(connection, schema, table)

    def ensure_publication(self, name: str, tables: Iterable[Table]) -> PublicationChange:
        """Make the publication cover the tables, and let the capture role read them; return what was done to it."""
        wanted = tuple(tables)
        with self.connect(autocommit=False) as connection:
            done = publications.ensure_publication(connection, name, wanted)
            if self.capture_role:
                grants.grant(connection, self.capture_role, wanted, ["select"])
        return done

    def ensure_heartbeat(self, schema: str) -> bool:
        """Create `<schema>.cdc_heartbeat` if it is missing, and let the capture role write it; return if it was."""
        with self.connect(autocommit=False) as connection:
            made = heartbeat_table.ensure_heartbeat(connection, schema)
            if self.capture_role:
                heartbeat = (schema, heartbeat_table.TABLE)
                grants.grant(connection, self.capture_role, [heartbeat], ["select", "insert", "update"])
        return made
