"""PostgreSQL, as a Dagster resource.

Here: connecting, with errors that say what to do, and one method a question that assets ask.
Not here: the questions' SQL (postgres_catalog, _tables, _publications, _slots, _heartbeat) and reading rows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Literal

import dagster as dg
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case
from pydantic import Field
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_exponential

from resources import (
    lsn,
    postgres_catalog,
    postgres_grants,
    postgres_heartbeat,
    postgres_identity,
    postgres_publications,
    postgres_slots,
    postgres_tables,
    postgres_truncate,
)
from resources.errors import Unreachable
from resources.postgres_catalog import ColumnInfo, TableCatalog
from resources.postgres_connection import Login, open_connection
from resources.postgres_identity import PublicationIdentity, ServerIdentity
from resources.postgres_publications import PublicationChange, PublicationInfo, Table
from resources.postgres_slots import SlotInfo
from resources.postgres_tables import ReplicaIdentity
from resources.secrets import DatabaseSecret, SecretLogin


class Postgres(dg.ConfigurableResource):  # type: ignore[type-arg]
    """A PostgreSQL server and one of its databases."""

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
        """Return the login as it is known now, for whoever connects by itself; raise what reading a secret does."""
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

    def columns(self, schema: str, table: str) -> tuple[ColumnInfo, ...]:
        """Return the table's columns in their order; raise TableMissing if there is none of that name."""
        with self.connect() as connection:
            return postgres_catalog.columns(connection, schema, table)

    def catalog(self, schema: str, table: str) -> TableCatalog:
        """Return columns, key and storage of the table as of one moment; raise TableMissing if there is none."""
        with self.connect(autocommit=False) as connection:
            connection.set_session(isolation_level="REPEATABLE READ", readonly=True)
            return postgres_catalog.catalog(connection, schema, table)

    def untellable_dates(self, schema: str, table: str) -> tuple[str, ...]:
        """Return the columns of type date that have a day before the year 1."""
        with self.connect() as connection:
            return postgres_catalog.untellable_dates(connection, schema, table)

    def publishes_generated(self, publication: str) -> bool:
        """Return whether the publication has the values of stored generated columns."""
        with self.connect() as connection:
            return postgres_catalog.publishes_generated(connection, publication)

    def has_values(self, schema: str, table: str, column: str) -> bool:
        """Return whether any row has a value in the column."""
        with self.connect() as connection:
            return postgres_catalog.has_values(connection, schema, table, column)

    def primary_key(self, schema: str, table: str) -> tuple[str, ...]:
        """Return the key's columns in the key's order, none if the table has no primary key."""
        with self.connect() as connection:
            return postgres_tables.primary_key(connection, schema, table)

    def refuse_truncate(self, schema: str, table: str) -> bool:
        """Make the table and its partitions refuse TRUNCATE; return whether that was a change."""
        with self.connect(autocommit=False) as connection:
            return postgres_truncate.refuse_truncate(connection, schema, table)

    def truncatable(self, schema: str, table: str) -> list[Table]:
        """Return schema and name of what takes a TRUNCATE, of the table and its partitions."""
        with self.connect() as connection:
            return postgres_truncate.unguarded(connection, schema, table)

    def row_count(self, schema: str, table: str) -> int:
        """Count the table's rows."""
        with self.connect() as connection:
            return postgres_tables.row_count(connection, schema, table)

    def replica_identity(self, schema: str, table: str) -> ReplicaIdentity:
        """Return what an UPDATE or DELETE of the table puts into the WAL of the old row."""
        with self.connect() as connection:
            return postgres_tables.replica_identity(connection, schema, table)

    def set_replica_identity(self, schema: str, table: str, identity: Literal["default", "nothing", "full"]) -> bool:
        """Set the replica identity; return whether that was a change."""
        with self.connect() as connection:
            return postgres_tables.set_replica_identity(connection, schema, table, identity)

    def system_identifier(self) -> str:
        """Return the number that initdb gave the database cluster: another one means another cluster."""
        return self._scalar("select system_identifier::text from pg_control_system()")

    def identity(self) -> ServerIdentity:
        """Return what tells that the server is still the one that it was, and where its WAL ends."""
        with self.connect() as connection:
            return postgres_identity.server(connection)

    def publication_identity(self, name: str) -> PublicationIdentity | None:
        """Return what tells that the publication is still the one that it was, None if there is none."""
        with self.connect() as connection:
            return postgres_identity.publication(connection, name)

    def current_lsn(self) -> int:
        """Return where the WAL has been written to."""
        return lsn.to_int(self._scalar("select pg_current_wal_lsn()::text"))

    def publication(self, name: str) -> PublicationInfo | None:
        """Return the publication, None if there is none of that name."""
        with self.connect() as connection:
            return postgres_publications.publication(connection, name)

    def publication_tables(self, name: str) -> tuple[Table, ...] | None:
        """Return schema and name of the publication's tables, None if there is no such publication."""
        found = self.publication(name)
        return found.tables if found else None

    def ensure_publication(self, name: str, tables: Iterable[Table]) -> PublicationChange:
        """Make the publication cover the tables, and let the capture role read them; return what was done to it."""
        wanted = tuple(tables)
        with self.connect(autocommit=False) as connection:
            done = postgres_publications.ensure_publication(connection, name, wanted)
            if self.capture_role:
                postgres_grants.grant(connection, self.capture_role, wanted, ["select"])
        return done

    def slot(self, name: str) -> SlotInfo | None:
        """Return the logical replication slot, None if there is none of that name."""
        with self.connect() as connection:
            return postgres_slots.slot(connection, name)

    def drop_slot(self, name: str, timeout_seconds: float = 30.0) -> bool:
        """Drop the slot, ending who reads from it; return whether there was one (raises SlotBusy)."""
        with self.connect() as connection:
            return postgres_slots.drop_slot(connection, name, timeout_seconds)

    def ensure_heartbeat(self, schema: str) -> bool:
        """Make `<schema>.cdc_heartbeat` if it is missing, and let the capture role beat; return whether it was."""
        with self.connect(autocommit=False) as connection:
            made = postgres_heartbeat.ensure_heartbeat(connection, schema)
            if self.capture_role:
                heartbeat = (schema, postgres_heartbeat.TABLE)
                postgres_grants.grant(connection, self.capture_role, [heartbeat], ["select", "insert", "update"])
        return made

    def beat(self, schema: str) -> int:
        """Commit one heartbeat; return an LSN that its change is not before (see postgres_heartbeat)."""
        with self.connect() as connection:
            return postgres_heartbeat.beat(connection, schema)

    def _scalar(self, query: str) -> str:
        with self.connect() as connection, connection.cursor() as cursor:
            cursor.execute(query)
            row = cursor.fetchone()
        if row is None:
            raise RuntimeError(f"{query!r} returned no row")
        return str(row[0])
