"""Run the scripts of a folder in the loader's transaction, in the sample's schema.

Scripts may create the schema, grant rights to a role or make it an owner, set the database's search_path, and contain
rows for COPY: the data lake demo's scripts (data/sql) and the dumps of pg_dump do. sql_script.py reads the scripts.
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator

import psycopg2
from psycopg2 import sql
from psycopg2.extensions import cursor

from cdc_lake.samples.errors import LoadError
from cdc_lake.samples.sample_tables import Progress
from cdc_lake.samples.sql_script import Script, Statement

_NAME = r'("[^"]+"|[\w$]+)'
_CREATE_SCHEMA = re.compile(rf"CREATE\s+SCHEMA\s+(?:IF\s+NOT\s+EXISTS\s+)?{_NAME}", re.IGNORECASE)
_CREATE_ROLE = re.compile(rf"CREATE\s+(?:ROLE|USER|GROUP)\s+(?!MAPPING\b){_NAME}", re.IGNORECASE)
_ALTER_DATABASE = re.compile(rf"ALTER\s+DATABASE\s+{_NAME}", re.IGNORECASE)
_GRANT = re.compile(r"GRANT\b.*\bTO\s+(.+?)(?:\s+(?:WITH|GRANTED\s+BY)\s.*)?$", re.IGNORECASE | re.DOTALL)
_OWNER = re.compile(rf"ALTER\b.*\bOWNER\s+TO\s+{_NAME}$", re.IGNORECASE | re.DOTALL)
_LINE_OF_DATA = re.compile(r"^COPY .*?, line (\d+)", re.MULTILINE)
_NO_ROLES = {"public", "current_role", "current_user", "session_user"}


def use_schema(cur: cursor, schema: str) -> None:
    """Reset the session's settings, so that each script starts with the same ones, and set search_path."""
    cur.execute("SET SESSION AUTHORIZATION DEFAULT")
    cur.execute("RESET ALL")
    # Without public: a script's DROP TABLE IF EXISTS must not find tables outside of the schema.
    cur.execute(sql.SQL("SET search_path TO {}").format(sql.Identifier(schema)))


def creates_schema(script: Script, schema: str) -> bool:
    """Return whether the script contains a CREATE SCHEMA for this schema."""
    created = (_CREATE_SCHEMA.match(statement.text) for statement in script.statements)
    return any(_folded(found.group(1)) == schema for found in created if found)


def run(cur: cursor, script: Script, schema: str, progress: Progress) -> list[str]:
    """Run a script; return the roles that were created because the script grants rights to them or needs an owner.

    A role that exists is kept: a CREATE ROLE for it is skipped. Raises LoadError, with file and line, if a statement
    fails or changes another database.
    """
    use_schema(cur, schema)
    total = len(script.statements)
    created: list[str] = []
    for done, statement in enumerate(script.statements, start=1):
        _refuse_another_database(cur, script, statement)
        try:
            created += _create_missing_roles(cur, statement)
            if statement.data is not None:
                cur.copy_expert(statement.text, io.StringIO(statement.data))
            elif not _creates_existing_role(cur, statement):
                cur.execute(statement.text)
        except psycopg2.Error as error:
            raise LoadError(
                f"Cannot run {script.path}, line {_line(statement, error)}: {str(error).strip()}\nNothing was loaded. "
                "Correct the statement, then load again."
            ) from error
        if cur.connection.get_parameter_status("client_encoding") != "UTF8":
            # A script may set another encoding, but its text is sent as UTF-8.
            cur.execute("SET client_encoding TO 'UTF8'")
        if done % 100 == 0 or done == total:
            progress(script.path.name, done, total)
    return created


def _refuse_another_database(cur: cursor, script: Script, statement: Statement) -> None:
    found = _ALTER_DATABASE.match(statement.text)
    target = cur.connection.info.dbname
    if found and _folded(found.group(1)) != target:
        name = _folded(found.group(1))
        raise LoadError(
            f"Cannot load {script.path}, line {statement.line}: it changes database {name}, but is loaded into "
            f"{target}. Load into {name} (--dbname), or change the name in the script. Nothing was loaded."
        )


def _create_missing_roles(cur: cursor, statement: Statement) -> Iterator[str]:
    """Create the roles that a GRANT or OWNER TO names and the server lacks, without login; yield their names."""
    found = _GRANT.match(statement.text) or _OWNER.match(statement.text)
    names = found.group(1).split(",") if found else []
    for name in (_folded(re.sub(r"^\s*GROUP\s+", "", each, flags=re.IGNORECASE)) for each in names):
        if name not in _NO_ROLES and not _is_role(cur, name):
            cur.execute(sql.SQL("CREATE ROLE {} NOLOGIN").format(sql.Identifier(name)))
            yield name


def _creates_existing_role(cur: cursor, statement: Statement) -> bool:
    found = _CREATE_ROLE.match(statement.text)
    return found is not None and _is_role(cur, _folded(found.group(1)))


def _is_role(cur: cursor, name: str) -> bool:
    cur.execute("SELECT 1 FROM pg_roles WHERE rolname = %s", (name,))
    return cur.fetchone() is not None


def _folded(name: str) -> str:
    """Return an identifier as PostgreSQL stores it."""
    name = name.strip()
    return name[1:-1] if name.startswith('"') else name.lower()


def _line(statement: Statement, error: psycopg2.Error) -> int:
    """Return the line of the error's position or of its row, or the statement's first line if it has neither."""
    if statement.data is not None and (row := _LINE_OF_DATA.search(error.diag.context or "")):
        return statement.line + statement.text.count("\n") + int(row.group(1))
    position = int(error.diag.statement_position or 1)
    return statement.line + statement.text.count("\n", 0, position - 1)
