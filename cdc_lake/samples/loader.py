"""Puts a sample database into a server, and takes it away again: all of it or nothing."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import psycopg2
from psycopg2 import errorcodes, sql
from psycopg2.extensions import connection, cursor
from psycopg2.extras import execute_values

from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.errors import LoadError
from cdc_lake.samples.northwind import OUTBOX_SQL, SCHEMA_SQL
from cdc_lake.samples.northwind.generate import dataset
from cdc_lake.samples.script_run import Progress, creates_schema, run, use_schema
from cdc_lake.samples.sql_script import read_folder

SCHEMA = "datalake"
PUBLICATION = "cdc_publication"
OUTBOX = "cdc_events"
MARK = "The sample database of cdc-lake"
"""The schema's comment; without it `unload` touches nothing."""

OUTBOX_READS = (
    "categories", "customers", "employees", "employee_territories", "order_details", "orders", "products", "region",
    "shippers", "suppliers", "territories",
)  # fmt: skip
OLDEST_SERVER = 120000
"""server_version_num of the oldest PostgreSQL that the outbox's triggers and SQL are meant for."""


@dataclass(frozen=True)
class LoadReport:
    """What was loaded."""

    tables: tuple[tuple[str, int], ...]
    """Each table of the schema, the outbox last, and its number of rows."""
    wal_level: str
    """The server's; changes can be captured at `logical` only."""
    seconds: float
    own_outbox: bool = False
    """Whether the scripts brought an outbox of their own, so that ours was not added."""
    roles: tuple[str, ...] = ()
    """The roles that were created, without login, because the scripts grant rights to them."""

    @property
    def outbox_rows(self) -> int:
        """The rows of cdc_events: one an order."""
        return dict(self.tables)[OUTBOX]


def load(
    parameters: ConnectionParameters,
    sql_dir: Path | None = None,
    progress: Progress | None = None,
) -> LoadReport:
    """Make schema datalake with the generated data, or with the scripts of sql_dir, then the outbox.

    Scripts that create cdc_events keep theirs: neither our outbox nor our triggers are added.
    Returns what was loaded. Raises LoadError, and leaves the database as it was, if the schema or the
    publication is there already, the server can't be reached, or a script fails.
    """
    started = time.monotonic()
    progress = progress or _unseen
    scripts = read_folder(sql_dir) if sql_dir else ()  # refused before anything is asked of the server
    conn = parameters.connect()
    roles: list[str] = []
    try:
        with conn.cursor() as cur:
            wal_level = _prepare(cur, parameters)
            for script in scripts:
                if not creates_schema(script, SCHEMA):
                    _ensure_schema(cur, parameters)
                roles += run(cur, script, SCHEMA, progress)
            _ensure_schema(cur, parameters)
            if not scripts:
                _load_generated(cur, progress)
            own_outbox = _has_own_outbox(cur)
            if not own_outbox:
                _add_outbox(cur, progress)
            cur.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(sql.Identifier(SCHEMA), sql.Literal(MARK)))
            tables = _count(cur)
        _commit(conn, parameters)
    except psycopg2.Error as error:
        raise LoadError(f"Loading into {parameters} failed: {str(error).strip()}\nNothing was loaded.") from error
    finally:
        conn.close()
    return LoadReport(tables, wal_level, time.monotonic() - started, own_outbox, tuple(roles))


def unload(conn: connection) -> bool:
    """Drop what `load` made, in one transaction: the schema with all that is in it, and the publication.

    A search_path of the database that is this schema alone, as scripts may set it, is reset. Roles stay: they
    belong to the server. Returns False if there was nothing to drop. Raises LoadError if the schema is not one
    that `load` made.
    """
    with conn, conn.cursor() as cur:
        mark = _mark(cur)
        if mark is None:
            return False
        if mark != MARK:
            raise LoadError(
                f"Schema {SCHEMA} was not made by `cdc-lake load`, so it is left alone. "
                f"If it may go: DROP SCHEMA {SCHEMA} CASCADE."
            )
        cur.execute(sql.SQL("DROP PUBLICATION IF EXISTS {}").format(sql.Identifier(PUBLICATION)))
        cur.execute(sql.SQL("DROP SCHEMA {} CASCADE").format(sql.Identifier(SCHEMA)))
        cur.execute(
            "SELECT 1 FROM pg_db_role_setting s JOIN pg_database d ON d.oid = s.setdatabase "
            "WHERE d.datname = current_database() AND s.setrole = 0 AND %s = ANY (s.setconfig)",
            (f"search_path={SCHEMA}",),
        )
        if cur.fetchone():
            cur.execute(sql.SQL("ALTER DATABASE {} RESET search_path").format(sql.Identifier(conn.info.dbname)))
    return True


def _unseen(_what: str, _done: int, _total: int) -> None:
    """The progress of a load that nobody watches."""


def _mark(cur: cursor) -> str | None:
    """The comment of the schema, empty if it has none; None if there is no schema."""
    cur.execute(
        "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = %s", (SCHEMA,)
    )
    row = cur.fetchone()
    return str(row[0]) if row else None


def _prepare(cur: cursor, parameters: ConnectionParameters) -> str:
    """Check that nothing is in the way. Returns the server's wal_level."""
    version = cur.connection.server_version
    if version < OLDEST_SERVER:
        raise LoadError(f"The server is PostgreSQL {version // 10000}; the sample needs {OLDEST_SERVER // 10000}.")
    mark = _mark(cur)
    if mark is not None:
        raise _already(mark, parameters)
    cur.execute("SELECT 1 FROM pg_publication WHERE pubname = %s", (PUBLICATION,))
    if cur.fetchone():
        raise LoadError(
            f"Publication {PUBLICATION} is already in {parameters}; nothing was changed. "
            f"If nobody needs it: DROP PUBLICATION {PUBLICATION}."
        )
    cur.execute("SHOW wal_level")
    row = cur.fetchone()
    return str(row[0]) if row else ""


def _ensure_schema(cur: cursor, parameters: ConnectionParameters) -> None:
    """The schema, where no script has created it."""
    if _mark(cur) is not None:
        return
    try:
        cur.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(SCHEMA)))
    except psycopg2.Error as error:
        # UNIQUE_VIOLATION: another load was first, by a moment
        if error.pgcode in (errorcodes.DUPLICATE_SCHEMA, errorcodes.UNIQUE_VIOLATION):
            raise _already(MARK, parameters) from error
        raise


def _already(mark: str, parameters: ConnectionParameters) -> LoadError:
    found = f"Schema {SCHEMA} is already in {parameters}; nothing was changed."
    if mark != MARK:
        return LoadError(f"{found} It is not the sample's: load into another database.")
    return LoadError(
        f"{found} To load the sample anew, drop the old one: "
        f"DROP PUBLICATION IF EXISTS {PUBLICATION}; DROP SCHEMA {SCHEMA} CASCADE."
    )


def _load_generated(cur: cursor, progress: Progress) -> None:
    use_schema(cur, SCHEMA)
    cur.execute(SCHEMA_SQL.read_text(encoding="utf-8"))
    tables = dataset()
    for done, table in enumerate(tables, start=1):
        statement = sql.SQL("INSERT INTO {} ({}) VALUES %s").format(
            sql.Identifier(SCHEMA, table.name), sql.SQL(", ").join(map(sql.Identifier, table.columns))
        )
        if table.rows:
            execute_values(cur, statement, table.rows, page_size=1000)
        progress("generated data", done, len(tables))


def _tables(cur: cursor) -> list[str]:
    """The schema's tables, the outbox last; without cdc_events_pending, which is unlogged and empty."""
    cur.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p') "
        "AND relpersistence = 'p' ORDER BY relname = %s, relname",
        (SCHEMA, OUTBOX),
    )
    return [str(name) for (name,) in cur.fetchall()]


def _has_own_outbox(cur: cursor) -> bool:
    """Whether the scripts made the outbox. Raises LoadError if they made it and no publication for it."""
    if OUTBOX not in _tables(cur):
        return False
    cur.execute(
        "SELECT 1 FROM pg_publication_tables WHERE (pubname, schemaname, tablename) = (%s, %s, %s)",
        (PUBLICATION, SCHEMA, OUTBOX),
    )
    if not cur.fetchone():
        raise LoadError(
            f"Cannot load the scripts: they create {SCHEMA}.{OUTBOX}, but no publication for it. Add "
            f"CREATE PUBLICATION {PUBLICATION} FOR TABLE {OUTBOX}, or leave out the table: then ours is added. "
            "Nothing was loaded."
        )
    return True


def _add_outbox(cur: cursor, progress: Progress) -> None:
    progress("outbox", 0, 1)
    cur.execute("SET CONSTRAINTS ALL IMMEDIATE")
    use_schema(cur, SCHEMA)
    missing = sorted(set(OUTBOX_READS) - set(_tables(cur)))
    if missing:
        raise LoadError(
            f"After the scripts, schema {SCHEMA} has no table {', '.join(missing)}. Scripts run with search_path "
            f"{SCHEMA}: create Northwind's tables without a schema's name, or in {SCHEMA}. Nothing was loaded."
        )
    cur.execute(OUTBOX_SQL.read_text(encoding="utf-8"))
    progress("outbox", 1, 1)


def _count(cur: cursor) -> tuple[tuple[str, int], ...]:
    counts = []
    for name in _tables(cur):
        cur.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(SCHEMA, name)))
        counts.append((name, int((cur.fetchone() or (0,))[0])))
    return tuple(counts)


def _commit(conn: connection, parameters: ConnectionParameters) -> None:
    try:
        conn.commit()
    except psycopg2.OperationalError as error:
        raise LoadError(
            f"The connection to {parameters} was lost while committing: {str(error).strip()}\n"
            f"Either everything was loaded or nothing: look whether schema {SCHEMA} is there."
        ) from error
