"""Load the MoMA sample into a server, and remove it again, each in one transaction."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import cursor

from cdc_lake.samples import sample_tables, server
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.errors import LoadError
from cdc_lake.samples.loader import LoadReport
from cdc_lake.samples.moma import DELIMITER, MARK, SCHEMA, SCHEMA_SQL, TABLES
from cdc_lake.samples.moma.generate import dataset
from cdc_lake.samples.sample_tables import Progress


def load(parameters: ConnectionParameters, files: Mapping[str, Path], progress: Progress) -> LoadReport:
    """Create the database if it is missing, and both tables with generated rows or those of `files` by table.

    With files, a table without a file stays empty. Raises LoadError, and creates no table, if a table exists, the
    server cannot be reached, or a file cannot be loaded.
    """
    started = time.monotonic()
    if unknown := sorted(set(files) - set(TABLES)):
        raise LoadError(f"Cannot load a file into {', '.join(unknown)}: the tables are {', '.join(TABLES)}.")
    server.ensure_database(parameters)
    try:
        with closing(parameters.connect()) as conn, conn, conn.cursor() as cur:
            wal_level = server.require_supported(cur, parameters)
            cur.execute(f"SET search_path TO {SCHEMA}")
            cur.execute(SCHEMA_SQL.read_text(encoding="utf-8"))
            for name in TABLES:
                cur.execute(
                    sql.SQL("COMMENT ON TABLE {} IS {}").format(sql.Identifier(SCHEMA, name), sql.Literal(MARK))
                )
            if files:
                for done, (name, file) in enumerate(files.items(), start=1):
                    sample_tables.copy(cur, SCHEMA, name, file, DELIMITER)
                    progress("files", done, len(files))
            else:
                sample_tables.insert(cur, SCHEMA, dataset(), progress)
            counts = sample_tables.count(cur, SCHEMA, TABLES)
    except psycopg2.errors.DuplicateTable as error:
        raise LoadError(
            f"Cannot load into {parameters}: {str(error).strip()}. Nothing was changed. To load the sample again: "
            f"DROP TABLE {', '.join(TABLES)}."
        ) from error
    except psycopg2.Error as error:
        raise LoadError(f"Cannot load into {parameters}: {str(error).strip()}\nNothing was loaded.") from error
    return LoadReport(counts, wal_level, time.monotonic() - started)


def unload(parameters: ConnectionParameters) -> bool:
    """Drop both tables, in one transaction, and keep the database; return whether they existed.

    Creates the database if it is missing. Raises LoadError if `load` did not create the tables.
    """
    server.ensure_database(parameters)
    with closing(parameters.connect()) as conn, conn, conn.cursor() as cur:
        comments = _comments(cur)
        if others := sorted(name for name, comment in comments.items() if comment != MARK):
            raise LoadError(
                f"Cannot remove the sample from {parameters}: `cdc-lake load` did not create {', '.join(others)}. "
                f"Nothing was changed. If it is not needed any more: DROP TABLE {', '.join(others)}."
            )
        for name in comments:
            cur.execute(sql.SQL("DROP TABLE {}").format(sql.Identifier(SCHEMA, name)))
    return bool(comments)


def _comments(cur: cursor) -> dict[str, str]:
    """Return the comments of the sample's tables that exist, by name; "" without a comment."""
    cur.execute(
        "SELECT relname, coalesce(obj_description(oid, 'pg_class'), '') FROM pg_class "
        "WHERE relnamespace = %s::regnamespace AND relname = ANY (%s)",
        (SCHEMA, list(TABLES)),
    )
    return {str(name): str(comment) for name, comment in cur.fetchall()}
