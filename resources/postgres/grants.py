"""What the role that connectors sign in as may do with tables."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from psycopg2 import errors, sql
from psycopg2.extensions import connection as Connection  # noqa: N812 - psycopg2 names its class in lower case

from resources.errors import AccessRefused

Right = Literal["select", "insert", "update"]


def grant(connection: Connection, role: str, tables: Iterable[tuple[str, str]], rights: Sequence[Right]) -> None:
    """Give the role these rights to the tables (schema and name), and the use of their schemas, where it lacks them.

    Raises:
        AccessRefused: there is no such role, or the login may not grant this.
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
                for right in rights:
                    # Of what is there already nothing is written: each grant is a change of the catalog.
                    cursor.execute(
                        "select has_table_privilege(%s, format('%%I.%%I', %s, %s), %s)", (role, *table, right)
                    )
                    if cursor.fetchone() == (False,):
                        parts = (sql.Identifier(*table), sql.Identifier(role))
                        cursor.execute(sql.SQL(f"grant {right} on {{}} to {{}}").format(*parts))
    except (errors.UndefinedObject, errors.InsufficientPrivilege) as error:
        names = ", ".join(".".join(table) for table in wanted)
        raise AccessRefused(
            f"Cannot let role {role} {', '.join(rights)} {names}: {str(error).strip().splitlines()[0]}.",
            "Make the role, or let the pipeline's login own the tables (docs/security.md).",
        ) from error
