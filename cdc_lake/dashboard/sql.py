"""The SQL of a declaration: where it is read from, and what it may be.

Here: inline text or a file beside the declaration, one SELECT, reading the declared dataset only.
Beside that, the same SELECT for whoever has no default database. Not here: running it.
"""

from __future__ import annotations

from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError


def read_sql(text: str, folder: Path | None) -> str:
    """The SQL itself: `text`, or, when it names a `.sql` file, what that file holds.

    Raises ValueError for a file that is missing, or outside of `folder`.
    """
    if not text.endswith(".sql") or len(text.split()) > 1:
        return text.strip()
    if folder is None:
        raise ValueError(f"{text} is a file, and this declaration was not read from a folder: write the SQL inline")
    root = folder.resolve()
    path = (root / text).resolve()
    if not path.is_relative_to(root):
        raise ValueError(f"{text} leaves {root}; allowed: a .sql file in the declaration's folder or below it")
    if not path.is_file():
        raise ValueError(f"the file {path} does not exist; allowed: the SQL itself, or a .sql file that exists")
    return path.read_text(encoding="utf-8").strip()


def check_select(sql: str, database: str, dataset: str) -> None:
    """Raise ValueError unless `sql` is one SELECT, in Athena's dialect, of `database.dataset` and nothing else.

    The restriction is what makes the dashboard's declared lineage true.
    """
    try:
        statements = [s for s in sqlglot.parse(sql, read="athena") if s is not None]
    except SqlglotError as error:
        raise ValueError(f"is not valid Athena SQL: {str(error).splitlines()[0]}") from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise ValueError("allowed: exactly one SELECT statement")
    named_here = {cte.alias_or_name.lower() for cte in statements[0].find_all(exp.CTE)}
    for table in statements[0].find_all(exp.Table):
        name, schema = table.name.lower(), table.db.lower()
        if (not schema and name in named_here) or (name == dataset and schema in ("", database)):
            continue
        raise ValueError(f"reads {table.sql(dialect='athena')}; allowed: {dataset} of the database {database}")


def qualified(sql: str, database: str) -> str:
    """`sql`, which `check_select` has passed, with `database` before each table that names none; without comments."""
    tree = sqlglot.parse_one(sql, read="athena")
    named_here = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    for table in tree.find_all(exp.Table):
        if not table.db and table.name.lower() not in named_here:
            table.set("db", exp.to_identifier(database))
    return tree.sql(dialect="athena", pretty=True, comments=False)
