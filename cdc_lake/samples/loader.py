"""Puts a sample database into a server, and takes it away again: all of it or nothing.

Here: the one transaction that makes the schema, the tables, the rows, the outbox and the publication.
Not here: slots, connectors and topics. A pipeline makes and removes its own.
"""

from __future__ import annotations

import time
from collections.abc import Callable
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
from cdc_lake.samples.sql_script import Script, Statement, read_folder

SCHEMA = "datalake"
PUBLICATION = "cdc_publication"
OUTBOX = "cdc_events"
MARK = "The sample database of cdc-lake"
"""The schema's comment; without it `unload` touches nothing."""

OUTBOX_READS = (
    "customers", "employees", "employee_territories", "order_details", "orders", "products", "shippers", "territories",
)  # fmt: skip
OLDEST_SERVER = 120000
"""server_version_num of the oldest PostgreSQL that the outbox's triggers and SQL are meant for."""

Progress = Callable[[str, int, int], None]
"""Called with what is being loaded, how much of it is done, and how much there is."""


@dataclass(frozen=True)
class LoadReport:
    """What was loaded."""

    tables: tuple[tuple[str, int], ...]
    """Each table of the schema, the outbox last, and its number of rows."""
    wal_level: str
    """The server's; changes can be captured at `logical` only."""
    seconds: float

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

    Returns what was loaded. Raises LoadError, and leaves the database as it was, if the schema or the
    publication is there already, the server can't be reached, or a script fails.
    """
    started = time.monotonic()
    progress = progress or _unseen
    scripts = read_folder(sql_dir) if sql_dir else ()  # refused before anything is asked of the server
    conn = parameters.connect()
    try:
        with conn.cursor() as cur:
            wal_level = _prepare(cur, parameters)
            for script in scripts:
                _run_script(cur, script, progress)
            if not scripts:
                _load_generated(cur, progress)
            _add_outbox(cur, progress)
            tables = _count(cur)
        _commit(conn, parameters)
    except psycopg2.Error as error:
        raise LoadError(f"Loading into {parameters} failed: {str(error).strip()}\nNothing was loaded.") from error
    finally:
        conn.close()
    return LoadReport(tables, wal_level, time.monotonic() - started)


def unload(conn: connection) -> bool:
    """Drop what `load` made, in one transaction: the schema with all that is in it, and the publication.

    Returns False if there was nothing to drop. Raises LoadError if the schema is not one that `load` made.
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
    """The schema, empty and marked. Returns the server's wal_level."""
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
    try:
        cur.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(SCHEMA)))
    except psycopg2.Error as error:
        # UNIQUE_VIOLATION: another load was first, by a moment
        if error.pgcode in (errorcodes.DUPLICATE_SCHEMA, errorcodes.UNIQUE_VIOLATION):
            raise _already(MARK, parameters) from error
        raise
    cur.execute(sql.SQL("COMMENT ON SCHEMA {} IS {}").format(sql.Identifier(SCHEMA), sql.Literal(MARK)))
    cur.execute("SHOW wal_level")
    row = cur.fetchone()
    _own_settings(cur)
    return str(row[0]) if row else ""


def _already(mark: str, parameters: ConnectionParameters) -> LoadError:
    found = f"Schema {SCHEMA} is already in {parameters}; nothing was changed."
    if mark != MARK:
        return LoadError(f"{found} It is not the sample's: load into another database.")
    return LoadError(
        f"{found} To load the sample anew, drop the old one: "
        f"DROP PUBLICATION IF EXISTS {PUBLICATION}; DROP SCHEMA {SCHEMA} CASCADE."
    )


def _own_settings(cur: cursor) -> None:
    """Undo what a script may have set, so that each starts alike, in schema datalake and nowhere else."""
    cur.execute("SET SESSION AUTHORIZATION DEFAULT")
    cur.execute("RESET ALL")
    # Without public: a script's DROP TABLE IF EXISTS must not find somebody else's table.
    cur.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(SCHEMA)))


def _run_script(cur: cursor, script: Script, progress: Progress) -> None:
    _own_settings(cur)
    total = len(script.statements)
    for done, statement in enumerate(script.statements, start=1):
        try:
            cur.execute(statement.text)
        except psycopg2.Error as error:
            raise LoadError(
                f"{script.path}, line {_line(statement, error)}: {str(error).strip()}\nNothing was loaded."
            ) from error
        if cur.connection.get_parameter_status("client_encoding") != "UTF8":
            # A script may declare an encoding of its own; it has been read into UTF-8 by now.
            cur.execute("SET client_encoding TO 'UTF8'")
        if done % 100 == 0 or done == total:
            progress(script.path.name, done, total)


def _line(statement: Statement, error: psycopg2.Error) -> int:
    """Where PostgreSQL points to, or where the statement starts if it points nowhere."""
    position = int(error.diag.statement_position or 1)
    return statement.line + statement.text.count("\n", 0, position - 1)


def _load_generated(cur: cursor, progress: Progress) -> None:
    cur.execute(SCHEMA_SQL.read_text(encoding="utf-8"))
    tables = dataset()
    for done, table in enumerate(tables, start=1):
        statement = sql.SQL("INSERT INTO {} ({}) VALUES %s").format(
            sql.Identifier(SCHEMA, table.name), sql.SQL(", ").join(map(sql.Identifier, table.columns))
        )
        if table.rows:
            execute_values(cur, statement, table.rows, page_size=1000)
        progress("generated data", done, len(tables))


def _add_outbox(cur: cursor, progress: Progress) -> None:
    progress("outbox", 0, 1)
    cur.execute("SET CONSTRAINTS ALL IMMEDIATE")
    _own_settings(cur)
    cur.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p')", (SCHEMA,)
    )
    missing = sorted(set(OUTBOX_READS) - {name for (name,) in cur.fetchall()})
    if missing:
        raise LoadError(
            f"After the scripts, schema {SCHEMA} has no table {', '.join(missing)}. Scripts run with search_path "
            f"{SCHEMA}: create Northwind's tables without a schema's name, or in {SCHEMA}. Nothing was loaded."
        )
    cur.execute(OUTBOX_SQL.read_text(encoding="utf-8"))
    progress("outbox", 1, 1)


def _count(cur: cursor) -> tuple[tuple[str, int], ...]:
    cur.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p') "
        "ORDER BY relname = %s, relname",
        (SCHEMA, OUTBOX),
    )
    counts = []
    for (name,) in cur.fetchall():
        cur.execute(sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(SCHEMA, name)))
        counts.append((str(name), int((cur.fetchone() or (0,))[0])))
    return tuple(counts)


def _commit(conn: connection, parameters: ConnectionParameters) -> None:
    try:
        conn.commit()
    except psycopg2.OperationalError as error:
        raise LoadError(
            f"The connection to {parameters} was lost while committing: {str(error).strip()}\n"
            f"Either everything was loaded or nothing: look whether schema {SCHEMA} is there."
        ) from error
