"""Grants privileges on tables to the role that connectors sign in as."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from psycopg2 import errors, sql
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from resources.errors import AccessRefused

Privilege = Literal["select", "insert", "update", "delete"]


def grant(
    connection: Connection, role: str, tables: Iterable[tuple[str, str]], privileges: Sequence[Privilege]
) -> None:
    """Grant the privileges on the tables (schema and name) and USAGE on their schemas to the role, unless it has them.

    Raises:
        AccessRefused: there is no such role, or the user may not grant this.
    """
    wanted = tuple(tables)
    try:
        with connection.cursor() as cursor:
            for schema in dict.fromkeys(schema for schema, _ in wanted):
                cursor.execute("select has_schema_privilege(%s, %s, 'usage')", (role, schema))
                if cursor.fetchone() == (False,):
                    parts = (sql.Identifier(schema), sql.Identifier(role))
                    cursor.execute(sql.SQL("grant usage on schema {} to {}").format(*parts))
            for table in wanted:
                for privilege in privileges:
                    # Existing privileges are not granted again, because each GRANT writes to the catalog.
                    cursor.execute(
                        "select has_table_privilege(%s, format('%%I.%%I', %s, %s), %s)", (role, *table, privilege)
                    )
                    if cursor.fetchone() == (False,):
                        parts = (sql.Identifier(*table), sql.Identifier(role))
                        cursor.execute(sql.SQL(f"grant {privilege} on {{}} to {{}}").format(*parts))
    except (errors.UndefinedObject, errors.InsufficientPrivilege) as error:
        names = ", ".join(".".join(table) for table in wanted)
        raise AccessRefused(
            f"Cannot grant {', '.join(privileges)} on {names} to role {role}: {str(error).strip().splitlines()[0]}.",
            "Create the role, or make the pipeline's user the owner of the tables and of their schemas"
            " (CDC_LAKE_CAPTURE_ROLE in docs/aws.md).",
        ) from error
