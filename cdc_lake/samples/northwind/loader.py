"""Load the Northwind sample into a server, and remove it again, each in one transaction."""

from __future__ import annotations

import time
from pathlib import Path

import psycopg2
from psycopg2 import errorcodes, sql
from psycopg2.extensions import connection, cursor

from cdc_lake.samples import sample_tables, server
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.errors import LoadError
from cdc_lake.samples.load_report import LoadReport
from cdc_lake.samples.northwind import OUTBOX_SQL, SCHEMA_SQL
from cdc_lake.samples.northwind.generate import dataset
from cdc_lake.samples.sample_tables import Progress, no_progress
from cdc_lake.samples.script_run import creates_schema, run, use_schema
from cdc_lake.samples.sql_script import read_folder

SCHEMA = "datalake"
PUBLICATION = "cdc_publication"
OUTBOX = "cdc_events"
MARK = "The sample database of cdc-lake"
"""The comment on the schema that `load` creates; `unload` drops no schema without it."""

OUTBOX_READS = (
    "categories", "customers", "employees", "employee_territories", "order_details", "orders", "products", "region",
    "shippers", "suppliers", "territories",
)  # fmt: skip


def load(
    parameters: ConnectionParameters,
    sql_dir: Path | None = None,
    progress: Progress = no_progress,
) -> LoadReport:
    """Create schema datalake from generated data, or from the scripts of `sql_dir`, and add the outbox.

    If the scripts create cdc_events, the sample's outbox and triggers are not added. Raises LoadError, and leaves the
    database unchanged, if the schema or the publication exists, the server cannot be reached, or a script fails.
    """
    started = time.monotonic()
    scripts = read_folder(sql_dir) if sql_dir else ()  # before the connection, so that invalid scripts change nothing
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
            tables = sample_tables.count(cur, SCHEMA, _tables(cur))
        _commit(conn, parameters)
    except psycopg2.Error as error:
        raise LoadError(
            f"Cannot load the Northwind sample into {parameters}: {str(error).strip()}\n"
            "Nothing was loaded. Correct the cause and run `cdc-lake load` again."
        ) from error
    finally:
        conn.close()
    return LoadReport(tables, wal_level, time.monotonic() - started, own_outbox, tuple(roles))


def unload(conn: connection) -> bool:
    """Drop the schema with all its objects, and the publication, in one transaction; return whether they existed.

    Resets the database's search_path if it is only this schema, as scripts may set it. Keeps roles, which belong to the
    server. Raises LoadError if `load` did not create the schema.
    """
    with conn, conn.cursor() as cur:
        mark = _mark(cur)
        if mark is None:
            return False
        if mark != MARK:
            raise LoadError(
                f"Cannot remove the sample: schema {SCHEMA} was not created by `cdc-lake load`. Nothing was changed. "
                f"If it is not needed any more: DROP SCHEMA {SCHEMA} CASCADE."
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


def _mark(cur: cursor) -> str | None:
    """Return the schema's comment, "" without a comment; None if the schema does not exist."""
    cur.execute(
        "SELECT coalesce(obj_description(oid, 'pg_namespace'), '') FROM pg_namespace WHERE nspname = %s", (SCHEMA,)
    )
    row = cur.fetchone()
    return str(row[0]) if row else None


def _prepare(cur: cursor, parameters: ConnectionParameters) -> str:
    """Return the server's wal_level. Raises LoadError if the sample cannot be loaded."""
    wal_level = server.require_supported(cur, parameters)
    mark = _mark(cur)
    if mark is not None:
        raise _schema_exists(mark, parameters)
    cur.execute("SELECT 1 FROM pg_publication WHERE pubname = %s", (PUBLICATION,))
    if cur.fetchone():
        raise LoadError(
            f"Cannot load the Northwind sample into {parameters}: publication {PUBLICATION} exists already. "
            f"Nothing was changed. If it is not needed any more: DROP PUBLICATION {PUBLICATION}."
        )
    return wal_level


def _ensure_schema(cur: cursor, parameters: ConnectionParameters) -> None:
    """Create the schema if no script has created it."""
    if _mark(cur) is not None:
        return
    try:
        cur.execute(sql.SQL("CREATE SCHEMA {}").format(sql.Identifier(SCHEMA)))
    except psycopg2.Error as error:
        # UNIQUE_VIOLATION: another load created it at the same moment
        if error.pgcode in (errorcodes.DUPLICATE_SCHEMA, errorcodes.UNIQUE_VIOLATION):
            raise _schema_exists(MARK, parameters) from error
        raise


def _schema_exists(mark: str, parameters: ConnectionParameters) -> LoadError:
    found = f"Cannot load the Northwind sample into {parameters}: schema {SCHEMA} exists already. Nothing was changed."
    if mark != MARK:
        return LoadError(f"{found} It is not the sample's schema: load into another database.")
    return LoadError(
        f"{found} To load the sample again, drop the existing one: "
        f"DROP PUBLICATION IF EXISTS {PUBLICATION}; DROP SCHEMA {SCHEMA} CASCADE."
    )


def _load_generated(cur: cursor, progress: Progress) -> None:
    use_schema(cur, SCHEMA)
    cur.execute(SCHEMA_SQL.read_text(encoding="utf-8"))
    sample_tables.insert(cur, SCHEMA, dataset(), progress)


def _tables(cur: cursor) -> list[str]:
    """Return the schema's tables, the outbox last, without cdc_events_pending, which is unlogged and empty."""
    cur.execute(
        "SELECT relname FROM pg_class WHERE relnamespace = %s::regnamespace AND relkind IN ('r', 'p') "
        "AND relpersistence = 'p' ORDER BY relname = %s, relname",
        (SCHEMA, OUTBOX),
    )
    return [str(name) for (name,) in cur.fetchall()]


def _has_own_outbox(cur: cursor) -> bool:
    """Return whether the scripts created an outbox. Raises LoadError if they created one without publishing it."""
    if OUTBOX not in _tables(cur):
        return False
    cur.execute(
        "SELECT 1 FROM pg_publication_tables WHERE (pubname, schemaname, tablename) = (%s, %s, %s)",
        (PUBLICATION, SCHEMA, OUTBOX),
    )
    if not cur.fetchone():
        raise LoadError(
            f"Cannot load the scripts: they create {SCHEMA}.{OUTBOX}, but no publication for it. Add "
            f"CREATE PUBLICATION {PUBLICATION} FOR TABLE {OUTBOX}, or remove the table, so that the sample's outbox is "
            "added. Nothing was loaded."
        )
    return True


def _add_outbox(cur: cursor, progress: Progress) -> None:
    progress("outbox", 0, 1)
    cur.execute("SET CONSTRAINTS ALL IMMEDIATE")
    use_schema(cur, SCHEMA)
    missing = sorted(set(OUTBOX_READS) - set(_tables(cur)))
    if missing:
        raise LoadError(
            f"Cannot add the outbox: after the scripts, schema {SCHEMA} has no table {', '.join(missing)}. Scripts run "
            f"with search_path {SCHEMA}: create Northwind's tables without a schema name, or in {SCHEMA}. Nothing was "
            "loaded."
        )
    cur.execute(OUTBOX_SQL.read_text(encoding="utf-8"))
    progress("outbox", 1, 1)


def _commit(conn: connection, parameters: ConnectionParameters) -> None:
    try:
        conn.commit()
    except psycopg2.OperationalError as error:
        raise LoadError(
            f"Cannot confirm the load: the connection to {parameters} was lost during the commit: "
            f"{str(error).strip()}\nEverything was loaded, or nothing. Check whether schema {SCHEMA} exists."
        ) from error
