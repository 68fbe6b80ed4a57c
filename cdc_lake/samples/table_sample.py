"""Load a sample that is a set of tables into a separate database, and remove it again, each in one transaction.

MoMA and Pagila are such samples. northwind/loader.py loads Northwind, which has an outbox and a publication.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import psycopg2
from psycopg2.extensions import cursor

from cdc_lake.samples import sample_tables, schema_objects, server
from cdc_lake.samples.connection import ConnectionParameters
from cdc_lake.samples.errors import LoadError
from cdc_lake.samples.load_report import LoadReport
from cdc_lake.samples.sample_tables import Progress, Table
from cdc_lake.samples.schema_objects import SchemaObject
from cdc_lake.samples.script_run import run, use_schema
from cdc_lake.samples.sql_script import Script, read_folder


@dataclass(frozen=True)
class TableSample:
    """A sample's tables, and where its rows come from."""

    title: str
    """The name in messages."""
    database: str
    """The default database, which `load` creates."""
    schema: str
    tables: tuple[str, ...]
    """The tables that the sample always has: with generated rows, scripts or files."""
    schema_sql: Path
    """The statements that create the tables, for generated rows and for files."""
    generate: Callable[[], tuple[Table, ...]]
    """Returns the generated rows, parents before children."""
    delimiter: str | None = None
    """The delimiter of the files that can be loaded instead of generated rows; None if files cannot be loaded."""
    scripts: bool = False
    """Whether SQL scripts, which create the tables themselves, can be loaded instead."""

    @property
    def mark(self) -> str:
        """The comment on every object that `load` creates; `unload` drops only objects with it."""
        return f"The {self.title} sample of cdc-lake"


def load(
    sample: TableSample,
    parameters: ConnectionParameters,
    progress: Progress,
    *,
    sql_dir: Path | None = None,
    files: Mapping[str, Path] | None = None,
) -> LoadReport:
    """Create the database if it is missing, and the tables with generated rows, or with those of scripts or files.

    `files` is keyed by table; with files, a table without a file stays empty. Raises LoadError and creates no table if
    a table exists, the server cannot be reached, or a script or a file cannot be loaded.
    """
    started = time.monotonic()
    if unknown := sorted(set(files or ()) - set(sample.tables)):
        raise LoadError(
            f"Cannot load a file into {', '.join(unknown)}: the sample has no such table. Choose from "
            f"{', '.join(sample.tables)}."
        )
    scripts = read_folder(sql_dir) if sql_dir else ()
    server.ensure_database(parameters)
    try:
        with closing(parameters.connect()) as conn, conn, conn.cursor() as cur:
            wal_level = server.require_supported(cur, parameters)
            use_schema(cur, sample.schema)
            existing = schema_objects.find(cur, sample.schema)
            _refuse_existing(sample, existing, parameters)
            roles = _fill(cur, sample, scripts, files or {}, progress)
            use_schema(cur, sample.schema)
            before = {(each.kind, each.name) for each in existing}
            found = schema_objects.find(cur, sample.schema)
            created = [each for each in found if (each.kind, each.name) not in before]
            tables = [each.label for each in created if each.kind == "TABLE"]
            _require_tables(sample, tables)
            schema_objects.mark(cur, created, sample.mark)
            counts = sample_tables.count(cur, sample.schema, tables)
    except psycopg2.Error as error:
        raise LoadError(
            f"Cannot load the {sample.title} sample into {parameters}: {str(error).strip()}\n"
            "Nothing was loaded. Correct the cause and run `cdc-lake load` again."
        ) from error
    return LoadReport(counts, wal_level, time.monotonic() - started, roles=tuple(roles))


def unload(sample: TableSample, parameters: ConnectionParameters) -> bool:
    """Drop what `load` created, in one transaction, and keep the database; return whether anything was dropped.

    Creates the database if it is missing. Raises LoadError, and drops nothing, if `load` did not create a table of the
    sample, or if another object uses one.
    """
    server.ensure_database(parameters)
    with closing(parameters.connect()) as conn, conn, conn.cursor() as cur:
        use_schema(cur, sample.schema)
        found = schema_objects.find(cur, sample.schema)
        if others := [each.name for each in _tables(sample, found) if each.comment != sample.mark]:
            raise LoadError(
                f"Cannot remove the sample from {parameters}: `cdc-lake load` did not create {', '.join(others)}. "
                f"Nothing was changed. To remove them nevertheless: DROP TABLE {', '.join(others)}."
            )
        statements = schema_objects.drop_statements(each for each in found if each.comment == sample.mark)
        try:
            for statement in statements:
                cur.execute(statement)
        except psycopg2.errors.DependentObjectsStillExist as error:
            raise LoadError(
                f"Cannot remove the sample from {parameters}: {str(error).strip()}\nNothing was changed. Drop the "
                "objects that use it first."
            ) from error
    return bool(statements)


def _tables(sample: TableSample, objects: Sequence[SchemaObject]) -> list[SchemaObject]:
    """Return the objects that have the name of one of the sample's tables."""
    return [
        each for each in objects if each.kind not in ("ROUTINE", "FUNCTION", "TYPE") and each.label in sample.tables
    ]


def _refuse_existing(sample: TableSample, existing: Sequence[SchemaObject], parameters: ConnectionParameters) -> None:
    if not (tables := _tables(sample, existing)):
        return
    found = (
        f'Cannot load the {sample.title} sample into {parameters}: relation "{tables[0].label}" already exists. '
        "Nothing was changed."
    )
    if any(each.comment != sample.mark for each in tables):
        raise LoadError(f"{found} It is not the sample's table: load into another database.")
    drops = schema_objects.drop_statements(each for each in existing if each.comment == sample.mark)
    raise LoadError(f"{found} To load the sample again: {'; '.join(drops)}.")


def _fill(
    cur: cursor, sample: TableSample, scripts: Sequence[Script], files: Mapping[str, Path], progress: Progress
) -> list[str]:
    """Create the tables with their rows; return the roles that were created for scripts."""
    if scripts:
        return [role for script in scripts for role in run(cur, script, sample.schema, progress)]
    cur.execute(sample.schema_sql.read_text(encoding="utf-8"))
    if not files:
        sample_tables.insert(cur, sample.schema, sample.generate(), progress)
    for done, (name, file) in enumerate(files.items(), start=1):
        if sample.delimiter is None:
            raise LoadError(
                f"Cannot load {file} into {name}: files cannot be loaded into the {sample.title} sample. "
                "Leave them out."
            )
        sample_tables.copy(cur, sample.schema, name, file, sample.delimiter)
        progress("files", done, len(files))
    return []


def _require_tables(sample: TableSample, created: Sequence[str]) -> None:
    if missing := [name for name in sample.tables if name not in created]:
        raise LoadError(
            f"Cannot load the scripts: they do not create {', '.join(missing)} in schema {sample.schema}. Nothing was "
            "loaded. Add the statements that create these tables."
        )
