"""A fake of PostgreSQL in memory: WAL position, slots, publications, columns, and SQL queries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case
from pydantic import PrivateAttr

from cdc_lake_tests.fakes.sql import Sql, connected
from cdc_lake_tests.fakes.steps import Noting, Steps
from resources.postgres.internal_tables.internal_table import InternalTable
from resources.postgres.publications import PublicationChange, PublicationInfo, Table
from resources.postgres.resource import Postgres
from resources.postgres.server_identity import PublicationIdentity, ServerIdentity
from resources.postgres.slots import SlotInfo
from resources.postgres.table_columns import ColumnInfo, Storage, TableCatalog
from resources.postgres.table_queries import ReplicaIdentity


class FakePostgres(Noting, Postgres):
    """One database. `sql` answers queries; each heartbeat advances the WAL and is passed to `listeners`."""

    host: str = "nowhere"
    user: str = "postgres"
    password: str = "secret"
    database: str = "shopdb"
    _sql: Sql = PrivateAttr(default_factory=lambda: Sql("postgres"))
    _slots: dict[str, SlotInfo] = PrivateAttr(default_factory=dict)
    _published: dict[str, tuple[Table, ...]] = PrivateAttr(default_factory=dict)
    _columns: dict[Table, tuple[ColumnInfo, ...]] = PrivateAttr(default_factory=dict)
    _keys: dict[Table, tuple[str, ...]] = PrivateAttr(default_factory=dict)
    _full: set[Table] = PrivateAttr(default_factory=set)
    _catalog_changes: dict[Table, dict[str, Any]] = PrivateAttr(default_factory=dict)
    _generated: list[str] = PrivateAttr(default_factory=list)
    _filled: set[str] = PrivateAttr(default_factory=set)
    _guarded: set[Table] = PrivateAttr(default_factory=set)
    _server: list[ServerIdentity] = PrivateAttr(default_factory=lambda: [ServerIdentity("7000000000000000001", 1, 0)])
    _made: dict[tuple[str, ...], int] = PrivateAttr(default_factory=dict)
    _unpublished: dict[str, tuple[str, ...]] = PrivateAttr(default_factory=dict)
    _own: set[Table] = PrivateAttr(default_factory=set)
    _signals: dict[str, str] = PrivateAttr(default_factory=dict)
    _signal_listeners: list[Any] = PrivateAttr(default_factory=list)
    _open: list[int] = PrivateAttr(default_factory=list)
    _wal: list[int] = PrivateAttr(default_factory=lambda: [1000])  # the WAL's end, shared by copies of the resource
    _listeners: list[Any] = PrivateAttr(default_factory=list)
    _steps: Steps = PrivateAttr(default_factory=Steps)

    @property
    def sql(self) -> Sql:
        return self._sql

    @property
    def listeners(self) -> list[Any]:
        """Return the functions to call with the LSN of each heartbeat."""
        return self._listeners

    def has(self, schema: str, table: str, columns: Iterable[ColumnInfo], key: tuple[str, ...]) -> None:
        """Add a table to the catalog; its rows are in `sql`."""
        self._columns[schema, table] = tuple(columns)
        self._keys[schema, table] = key

    def put_slot(self, name: str, **changes: Any) -> None:  # noqa: ANN401 - SlotInfo's fields
        """Create a healthy slot, except for `changes`."""
        healthy = SlotInfo(name, "pgoutput", self.database, True, 900, 990, 100, "reserved", None)
        self._slots[name] = replace(healthy, **changes)

    @contextmanager
    def connect(
        self,
        database: str | None = None,  # noqa: ARG002 - there is one
        *,
        autocommit: bool = True,  # noqa: ARG002 - nothing is rolled back
    ) -> Iterator[Connection]:
        """See Postgres."""
        with connected(self._sql) as connection:
            yield connection

    def columns(self, schema: str, table: str) -> tuple[ColumnInfo, ...]:
        """See Postgres."""
        return self._columns[schema, table]

    def columns_by_table(self, schema: str, tables: Iterable[str]) -> dict[str, tuple[ColumnInfo, ...]]:
        """See Postgres."""
        return {table: self._columns[schema, table] for table in tables}

    def catalog(self, schema: str, table: str) -> TableCatalog:
        """See Postgres."""
        place = list(self._columns).index((schema, table)) + 1
        found = TableCatalog(self._columns[schema, table], self._keys[schema, table], Storage(place, place))
        return replace(found, **self._catalog_changes.get((schema, table), {}))

    def change_catalog(self, schema: str, table: str, **changes: Any) -> None:  # noqa: ANN401 - TableCatalog's fields
        """Set what the catalog contains about a table."""
        self._catalog_changes[schema, table] = changes

    def fill(self, *columns: str) -> None:
        """Declare that rows have values in these columns."""
        self._filled.update(columns)

    def unsupported_dates(self, schema: str, table: str) -> tuple[str, ...]:
        """See Postgres."""
        return tuple(c.name for c in self._columns[schema, table] if c.base_type == "date" and c.name in self._filled)

    def publish_generated(self) -> None:
        """Let all publications contain stored generated columns."""
        self._generated.append("s")

    def publishes_generated(self, publication: str) -> bool:  # noqa: ARG002 - all do, or none does
        """See Postgres."""
        return bool(self._generated)

    def has_values(self, schema: str, table: str, column: str) -> bool:  # noqa: ARG002 - columns have their own names
        """See Postgres."""
        return column in self._filled

    def replica_identity(self, schema: str, table: str) -> ReplicaIdentity:
        """See Postgres."""
        return "full" if (schema, table) in self._full else "default"

    def row_count(self, schema: str, table: str) -> int:
        """See Postgres."""
        _, rows = self._sql.run(f'SELECT count(*) FROM "{schema}"."{table}"')
        return int(rows[0][0])

    def set_replica_identity(self, schema: str, table: str, identity: Literal["default", "nothing", "full"]) -> bool:
        """See Postgres."""
        changed = self.replica_identity(schema, table) != identity
        (self._full.add if identity == "full" else self._full.discard)((schema, table))
        return changed

    def refuse_truncate(self, schema: str, table: str) -> bool:
        """See Postgres."""
        changed = (schema, table) not in self._guarded
        self._guarded.add((schema, table))
        return changed

    def truncatable(self, schema: str, table: str) -> list[Table]:
        """See Postgres."""
        return [] if (schema, table) in self._guarded else [(schema, table)]

    def identity(self) -> ServerIdentity:
        """See Postgres."""
        return replace(self._server[0], lsn=self._wal[0])

    def becomes(self, **changes: Any) -> None:  # noqa: ANN401 - ServerIdentity's fields
        """Replace the server by another one."""
        self._server[0] = replace(self._server[0], **changes)

    def publication(self, name: str) -> PublicationInfo | None:
        """See Postgres."""
        tables = self._published.get(name)
        return None if tables is None else PublicationInfo(name, tables, self._unpublished.get(name, ()), ())

    def publication_identity(self, name: str) -> PublicationIdentity | None:
        """See Postgres."""
        if name not in self._published:
            return None
        members = {f"{s}.{t}": self._made.get((name, s, t), 1) for s, t in self._published[name]}
        return PublicationIdentity(self._made.get((name,), 1), str(self._made.get((name, "version"), 1)), members)

    def republish(self, name: str, *what: str, tables: Iterable[Table] | None = None, unpublished: str = "") -> None:
        """Re-create the publication (no arguments), its version ("version") or a membership (schema, table)."""
        self._made[(name, *what)] = self._made.get((name, *what), 1) + 1
        if tables is not None:
            self._published[name] = tuple(tables)
        self._unpublished[name] = (unpublished,) if unpublished else ()

    def drop_publication(self, name: str) -> None:
        """Remove the publication."""
        del self._published[name]

    def ensure_publication(self, name: str, tables: Iterable[Table]) -> PublicationChange:
        """See Postgres."""
        before = self._published.get(name)
        added = tuple(table for table in tables if table not in (before or ()))
        self._published[name] = (*(before or ()), *added)
        if before is None:
            return PublicationChange("created", added)
        return PublicationChange("extended" if added else "unchanged", added)

    def ensure_internal_table(self, schema: str, table: InternalTable) -> bool:
        """See Postgres."""
        missing = (schema, table.name) not in self._own
        self._own.add((schema, table.name))
        return missing

    def request_snapshot(self, schema: str, name: str, signal_id: str, table: str) -> bool:  # noqa: ARG002 - one schema
        """See Postgres."""
        if signal_id in self._signals:
            return False
        self._signals[signal_id] = table
        for listener in self._signal_listeners:
            listener(table)
        return True

    @property
    def signal_listeners(self) -> list[Any]:
        """Return the functions to call with the table of each signal."""
        return self._signal_listeners

    @property
    def signals(self) -> dict[str, str]:
        """Return the tables to read by signal."""
        return self._signals

    def hold_transaction(self, xid: int | None) -> None:
        """Leave a transaction open, or end it."""
        self._open[:] = [] if xid is None else [xid]

    def new_xid(self) -> int:
        """See Postgres."""
        return 1000

    def oldest_open_xid(self) -> int:
        """See Postgres."""
        return min([1000, *self._open])

    def write_heartbeat(self, schema: str) -> int:  # noqa: ARG002 - there is one
        """See Postgres."""
        self.advance_wal()
        for listener in self._listeners:
            listener(self._wal[0])
        return self._wal[0]

    def advance_wal(self) -> None:
        """Advance the WAL by a change other than a heartbeat."""
        self._wal[0] += 10

    def rewind(self, lsn: int) -> None:
        """Move the WAL's end back, as another or a restored server does."""
        self._wal[0] -= lsn

    def slot(self, name: str) -> SlotInfo | None:
        """See Postgres."""
        return self._slots.get(name)

    def drop_slot(self, name: str, timeout_seconds: float = 30.0) -> bool:  # noqa: ARG002 - no reader holds it
        """See Postgres."""
        if name not in self._slots:
            return False
        self._steps.take(f"slot {name}")
        del self._slots[name]
        return True
