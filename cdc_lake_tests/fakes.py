"""The resources as small fakes in memory: they answer like the systems, and note what is removed or restarted.

Here: state and answers. Not here: Kafka (fake_kafka.py), SQL (fake_sql.py), objects (memory_store.py), and a
pipeline's events flowing through them (world.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Literal

import dagster as dg
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case
from pydantic import PrivateAttr

from cdc_lake_tests.fake_sql import Sql, connected
from cdc_lake_tests.fake_steps import Steps
from resources.athena import Athena, QueryResult
from resources.connectors import FAILED, RUNNING, ConnectorStatus, PutOutcome, TaskStatus
from resources.glue import GlueCatalog, TableDefinition
from resources.kafka_connect import KafkaConnect
from resources.postgres import Postgres
from resources.postgres_catalog import ColumnInfo
from resources.postgres_publications import PublicationChange, Table
from resources.postgres_slots import SlotInfo


class FakePostgres(Postgres):
    """One database. `sql` answers queries; each beat moves the WAL on, and is handed to `listeners`."""

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
    _heartbeats: set[str] = PrivateAttr(default_factory=set)
    _wal: list[int] = PrivateAttr(default_factory=lambda: [1000])  # its end; a copy of the resource shares it
    _listeners: list[Any] = PrivateAttr(default_factory=list)
    _steps: Steps = PrivateAttr(default_factory=Steps)

    def noting(self, steps: Steps) -> FakePostgres:
        """Itself, with removals noted there."""
        self._steps = steps
        return self

    @property
    def sql(self) -> Sql:
        """The database's tables."""
        return self._sql

    @property
    def listeners(self) -> list[Any]:
        """Called with the LSN of each beat."""
        return self._listeners

    def has(self, schema: str, table: str, columns: Iterable[ColumnInfo], key: tuple[str, ...]) -> None:
        """The database has such a table from now on; its rows are `sql`'s business."""
        self._columns[schema, table] = tuple(columns)
        self._keys[schema, table] = key

    def put_slot(self, name: str, **changes: Any) -> None:  # noqa: ANN401 - SlotInfo's fields
        """Make a healthy slot, but for `changes`."""
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

    def primary_key(self, schema: str, table: str) -> tuple[str, ...]:
        """See Postgres."""
        return self._keys[schema, table]

    def row_count(self, schema: str, table: str) -> int:
        """See Postgres."""
        _, rows = self._sql.run(f'SELECT count(*) FROM "{schema}"."{table}"')
        return int(rows[0][0])

    def set_replica_identity(self, schema: str, table: str, identity: Literal["default", "nothing", "full"]) -> bool:
        """See Postgres."""
        changed = identity == "full" and (schema, table) not in self._full
        self._full.add((schema, table))
        return changed

    def system_identifier(self) -> str:
        """See Postgres."""
        return "7000000000000000001"

    def current_lsn(self) -> int:
        """See Postgres."""
        return self._wal[0]

    def publication_tables(self, name: str) -> tuple[Table, ...] | None:
        """See Postgres."""
        return self._published.get(name)

    def ensure_publication(self, name: str, tables: Iterable[Table]) -> PublicationChange:
        """See Postgres."""
        before = self._published.get(name)
        added = tuple(table for table in tables if table not in (before or ()))
        self._published[name] = (*(before or ()), *added)
        if before is None:
            return PublicationChange("created", added)
        return PublicationChange("extended" if added else "unchanged", added)

    def ensure_heartbeat(self, schema: str) -> bool:
        """See Postgres."""
        missing = schema not in self._heartbeats
        self._heartbeats.add(schema)
        return missing

    def beat(self, schema: str) -> int:  # noqa: ARG002 - there is one
        """See Postgres."""
        self.beat_silently()
        for listener in self._listeners:
            listener(self._wal[0])
        return self._wal[0]

    def beat_silently(self) -> None:
        """The WAL moves on by another change than a heartbeat."""
        self._wal[0] += 10

    def slot(self, name: str) -> SlotInfo | None:
        """See Postgres."""
        return self._slots.get(name)

    def drop_slot(self, name: str, timeout_seconds: float = 30.0) -> bool:  # noqa: ARG002 - nobody holds it
        """See Postgres."""
        if name not in self._slots:
            return False
        self._steps.take(f"slot {name}")
        del self._slots[name]
        return True


class FakeConnect(KafkaConnect):
    """Connectors in memory: each runs one task until `fail` is called."""

    url: str = "http://nowhere:8083"
    _configs: dict[str, dict[str, str]] = PrivateAttr(default_factory=dict)
    _states: dict[str, ConnectorStatus] = PrivateAttr(default_factory=dict)
    _restarts: list[str] = PrivateAttr(default_factory=list)
    _steps: Steps = PrivateAttr(default_factory=Steps)

    def noting(self, steps: Steps) -> FakeConnect:
        """Itself, with removals noted there."""
        self._steps = steps
        return self

    @property
    def restarts(self) -> list[str]:
        """The connectors that were restarted, as often as they were."""
        return self._restarts

    def run(self, name: str, state: str = RUNNING) -> None:
        """The connector and its task are RUNNING, or both in another state."""
        self._states[name] = ConnectorStatus(name, state, (TaskStatus(0, state, "worker", None),))

    def fail(self, name: str, cause: str, *, connector_too: bool = False) -> None:
        """The connector's task fails, or the connector before it has a task."""
        task = TaskStatus(0, FAILED, "worker", f"org.apache.SomeException\nCaused by: {cause}")
        self._states[name] = (
            ConnectorStatus(name, FAILED, (), f"Caused by: {cause}")
            if connector_too
            else ConnectorStatus(name, RUNNING, (task,))
        )

    def get(self, name: str) -> dict[str, str] | None:
        """See KafkaConnect."""
        return self._configs.get(name)

    def put(self, name: str, config: Mapping[str, str]) -> PutOutcome:
        """See KafkaConnect."""
        before = self._configs.get(name)
        self._configs[name] = dict(config)
        if before == config:
            return "unchanged"
        self.run(name)
        return "created" if before is None else "updated"

    def status(self, name: str) -> ConnectorStatus | None:
        """See KafkaConnect."""
        return self._states.get(name)

    def wait_running(self, name: str, tasks: int = 1, timeout_seconds: float = 120.0) -> ConnectorStatus:  # noqa: ARG002
        """See KafkaConnect."""
        return self._states[name]

    def restart_failed(self, name: str) -> tuple[int, ...]:
        """See KafkaConnect; it goes on failing until `run` is called."""
        self._restarts.append(name)
        return tuple(task.id for task in self._states[name].failed_tasks)

    def delete(self, name: str, *, offsets: bool = True) -> bool:
        """See KafkaConnect."""
        if name not in self._states:
            return False
        self._steps.take(f"connector {name}{' with offsets' if offsets else ''}")
        del self._states[name]
        self._configs.pop(name, None)
        return True


class FakeGlue(GlueCatalog):
    """A catalog in memory."""

    _tables: dict[str, TableDefinition] = PrivateAttr(default_factory=dict)
    _partitions: dict[str, set[tuple[str, ...]]] = PrivateAttr(default_factory=dict)
    _steps: Steps = PrivateAttr(default_factory=Steps)

    def noting(self, steps: Steps) -> FakeGlue:
        """Itself, with removals noted there."""
        self._steps = steps
        return self

    def ensure_database(self, name: str, location: str | None = None) -> bool:  # noqa: ARG002 - all are there
        """See GlueCatalog."""
        return False

    def get_table(self, database: str, name: str) -> TableDefinition | None:
        """See GlueCatalog."""
        return self._tables.get(f"{database}.{name}")

    def put_table(self, definition: TableDefinition) -> bool:
        """See GlueCatalog."""
        changed = self._tables.get(definition.full_name) != definition
        self._tables[definition.full_name] = definition
        return changed

    def put_partitions(self, definition: TableDefinition, values: Iterable[Sequence[str]]) -> int:
        """See GlueCatalog."""
        present = self._partitions.setdefault(definition.full_name, set())
        missing = {tuple(each) for each in values} - present
        present |= missing
        return len(missing)

    def delete_table(self, database: str, name: str) -> bool:
        """See GlueCatalog."""
        if f"{database}.{name}" not in self._tables:
            return False
        self._steps.take(f"catalog {database}.{name}")
        del self._tables[f"{database}.{name}"]
        return True


class FakeAthena(Athena):
    """Athena over SQLite's tables; views that it makes appear in `glue`."""

    _sql: Sql = PrivateAttr(default_factory=lambda: Sql("trino"))
    _types: dict[str, str] = PrivateAttr(default_factory=dict)
    _glue: FakeGlue | None = PrivateAttr(default=None)

    def with_catalog(self, glue: FakeGlue) -> FakeAthena:
        """Itself, with views noted in that catalog."""
        self._glue = glue
        return self

    @property
    def sql(self) -> Sql:
        """The lake's tables."""
        return self._sql

    @property
    def types(self) -> dict[str, str]:
        """The types of columns, by name; varchar where none is given."""
        return self._types

    def query(self, sql: str) -> QueryResult:
        """See Athena."""
        names, rows = self._sql.run(sql)
        columns = tuple((name, self._types.get(name, "varchar")) for name in names)
        return QueryResult(columns, tuple(rows), "query-1", 0, 0.0)

    def execute(self, sql: str) -> QueryResult:
        """See Athena."""
        result = self.query(sql)
        if self._glue is not None and sql.startswith("CREATE OR REPLACE VIEW"):
            database, name = sql.split('"')[1], sql.split('"')[3]
            self._glue.put_table(TableDefinition(database, name, "", (), table_type="VIRTUAL_VIEW"))
        return result


def evaluate(check: dg.AssetChecksDefinition, **resources: object) -> dg.AssetCheckResult:
    """What a check finds: Dagster's direct invocation would make the fakes anew, without what they hold."""
    found = check.op.compute_fn.decorated_fn(**resources)  # type: ignore[union-attr]
    assert isinstance(found, dg.AssetCheckResult)
    return found


def bound(**resources: object) -> dict[str, dg.ResourceDefinition]:
    """The fakes as they are, for assets and sensors."""
    return {name: dg.ResourceDefinition.hardcoded_resource(each) for name, each in resources.items()}
