"""Read a dashboard's SQL, and check that it reads only the declared dataset."""

from __future__ import annotations

from pathlib import Path

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError


def read_file(name: str, folder: Path | None) -> str:
    """Return the text of a file that the YAML names. Raises ValueError if it is missing or not below `folder`."""
    if folder is None:
        raise ValueError(
            f"{name} is a file, and this YAML was not read from a folder; write the file's content into the YAML"
        )
    root = folder.resolve()
    path = (root / name).resolve()
    if not path.is_relative_to(root):
        raise ValueError(f"{name} is outside {root}; allowed: a file in the YAML's folder or below it")
    if not path.is_file():
        raise ValueError(f"the file {path} does not exist")
    return path.read_text(encoding="utf-8").strip()


def check_select(sql: str, database: str, dataset: str) -> None:
    """Raise ValueError unless `sql` is one SELECT in Athena's dialect that reads only `database.dataset`.

    This makes the asset's declared lineage complete.
    """
    try:
        statements = [each for each in sqlglot.parse(sql, read="athena") if each is not None]
    except SqlglotError as error:
        raise ValueError(f"is not valid Athena SQL: {str(error).splitlines()[0]}") from error
    if len(statements) != 1 or not isinstance(statements[0], exp.Query):
        raise ValueError("allowed: exactly one SELECT statement")
    ctes = _ctes(statements[0])
    for table in statements[0].find_all(exp.Table):
        name, schema = table.name.lower(), table.db.lower()
        if (not schema and name in ctes) or (name == dataset and schema in ("", database)):
            continue
        raise ValueError(f"reads {table.sql(dialect='athena')}; allowed: {dataset} in the database {database}")


def qualified(sql: str, database: str) -> str:
    """Return checked SQL without comments, with `database` before each unqualified table."""
    tree = sqlglot.parse_one(sql, read="athena")
    ctes = _ctes(tree)
    for table in tree.find_all(exp.Table):
        if not table.db and table.name.lower() not in ctes:
            table.set("db", exp.to_identifier(database))
    return tree.sql(dialect="athena", pretty=True, comments=False)


def _ctes(tree: exp.Expr) -> set[str]:
    return {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
