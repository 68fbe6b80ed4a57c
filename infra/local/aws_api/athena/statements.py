"""Determines the kind of a SQL statement from its first words, and rejects statements that are not supported.

Trino detects syntax errors after the first words: the execution becomes FAILED, while Athena would reject the request.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from infra.local.aws_api.athena.errors import invalid_request

CATALOG = "awsdatacatalog"

_COMMENTS = re.compile(r"\A(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?\*/)+", re.DOTALL)
_FORMS: tuple[tuple[str, Literal["DDL", "DML", "UTILITY"], str], ...] = (
    (r"(SELECT|WITH|VALUES|TABLE|\()", "DML", "SELECT"),
    (r"INSERT\s+INTO\b", "DML", "INSERT"),
    (r"CREATE\s+TABLE\b", "DDL", "CREATE_TABLE_AS_SELECT"),
    (r"CREATE\s+(OR\s+REPLACE\s+)?VIEW\b", "DDL", "CREATE_VIEW"),
    (r"CREATE\s+SCHEMA\b", "DDL", "CREATE_DATABASE"),
    (r"DROP\s+TABLE\b", "DDL", "DROP_TABLE"),
    (r"DROP\s+VIEW\b", "DDL", "DROP_VIEW"),
    (r"DROP\s+SCHEMA\b", "DDL", "DROP_DATABASE"),
    (r"SHOW\s+(TABLES|COLUMNS|SCHEMAS|CREATE)\b", "UTILITY", "SHOW"),
    (r"(DESCRIBE|DESC)\b", "UTILITY", "DESCRIBE_TABLE"),
    (r"EXPLAIN\b", "UTILITY", "EXPLAIN"),
)
_OFFERED = "SELECT, INSERT INTO, CREATE TABLE AS, CREATE VIEW, CREATE SCHEMA, DROP, SHOW, DESCRIBE and EXPLAIN"


@dataclass(frozen=True)
class Statement:
    """A statement that Trino may run."""

    sql: str
    """The text without leading comments and without the final semicolon."""
    kind: Literal["DDL", "DML", "UTILITY"]
    form: str
    """Athena's SubstatementType."""

    @property
    def has_header(self) -> bool:
        """Whether the first row of the result has the column names (SELECT only)."""
        return self.form == "SELECT"

    @property
    def writes_rows(self) -> bool:
        """Whether the result is the number of written rows instead of rows."""
        return self.form in {"INSERT", "CREATE_TABLE_AS_SELECT"}


def classify(sql: str) -> Statement:
    """Return the statement with its kind.

    Raises:
        AwsError: InvalidRequestException if the text is empty, is not a supported statement, or names a catalog that
            Athena does not have.
    """
    text = _COMMENTS.sub("", sql).rstrip().removesuffix(";").rstrip()
    if not text:
        raise invalid_request("The query is empty.")
    for pattern, kind, form in _FORMS:
        if re.match(pattern, text, re.IGNORECASE):
            _refuse_other_catalogs(text)
            return Statement(text, kind, form)
    word = text.split(maxsplit=1)[0]
    raise invalid_request(
        f"line 1:1: mismatched input '{word[:40]}'. The local Athena can run {_OFFERED}.", "MALFORMED_QUERY"
    )


def _refuse_other_catalogs(text: str) -> None:
    """Reject a statement that names a catalog that Athena does not have, such as Trino's internal ones."""
    try:
        tables = list(sqlglot.parse_one(text, dialect="athena").find_all(exp.Table))
    except SqlglotError:
        return  # Trino parses the statement itself and reports the error better
    for table in tables:
        if table.catalog and table.catalog.lower() != CATALOG:
            raise invalid_request(f"Catalog '{table.catalog}' does not exist; the only catalog is AwsDataCatalog.")
