"""`cdc-lake query`: run Athena SQL, read-only unless --write is given."""

from __future__ import annotations

import difflib
import logging
import re
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from cdc_lake.cli.printable import for_output

if TYPE_CHECKING:
    from sqlglot import exp

    from resources.athena import Athena, QueryResult

# In Trino, a statement that begins with one of these words is a query. Used if sqlglot cannot parse the statement.
_QUERY_WORDS = frozenset({"SELECT", "WITH", "VALUES", "TABLE"})
# First words of the other statements of Athena and Trino, which may change something.
_CHANGING_WORDS = """
    ALTER ANALYZE CALL COMMENT COMMIT CREATE DEALLOCATE DELETE DENY DROP EXECUTE GRANT INSERT LOAD MERGE MSCK OPTIMIZE
    PREPARE REFRESH RESET REVOKE ROLLBACK SET START TRUNCATE UNLOAD UPDATE USE VACUUM
"""
_READING_COMMANDS = frozenset({"SHOW", "DESCRIBE", "DESC"})
_STATEMENT_WORDS = _QUERY_WORDS | _READING_COMMANDS | {"EXPLAIN", *_CHANGING_WORDS.split()}
_SEVERAL, _UNKNOWN = "several statements", "unknown"
# Trino and Athena end a line, and so a comment, at a carriage return.
_CARRIAGE_RETURN = re.compile(r"\r\n?")
_COMMENTS = re.compile(r"\A(?:\s+|--[^\n]*(?:\n|\Z)|/\*.*?\*/)+", re.DOTALL)


class OutputFormat(StrEnum):
    """Format of the printed rows."""

    table = "table"
    csv = "csv"
    json = "json"


def register(app: typer.Typer) -> None:
    """Add the command `query` to the application."""
    app.command("query")(query)


def query(
    sql: Annotated[str, typer.Argument(help="One statement in Athena's SQL.")],
    output: Annotated[OutputFormat, typer.Option("--format", "-f", help="How to print the rows.")] = OutputFormat.table,
    database: Annotated[
        str | None, typer.Option(help="Database of unqualified table names; default: the profile's.")
    ] = None,
    write: Annotated[bool, typer.Option("--write", help="Also run statements that change something.")] = False,
    reuse: Annotated[
        int,
        typer.Option(
            min=0, max=10080, help="Return an earlier result of the same query that is at most this many minutes old."
        ),
    ] = 0,
    as_of: Annotated[
        str | None,
        typer.Option(
            "--as-of", metavar="INSTANT|TIME", help="Read the tables in their state at that commit or time (UTC)."
        ),
    ] = None,
) -> None:
    """Run SQL on the lake: on Athena, or on Trino in the local profile.

    Spark runs the query with --as-of, and in the local profile if it reads a table `<name>_rt`.
    """
    if not write and (fault := syntax_fault(sql) or read_only_fault(sql)):
        raise typer.BadParameter(fault)
    # Imported late: Dagster takes seconds to import.
    from cdc_lake.cli.data import spark_query

    if as_of is not None or (not write and spark_query.needs_spark(sql)):
        if write or reuse:
            raise typer.BadParameter(
                "Spark runs this query, and supports neither --write nor --reuse. Leave out these options."
            )
        result = spark_query.run(sql, database, as_of)
    else:
        result = _athena(database).query(sql, reuse_minutes=reuse)
    print_result(result, output)


def print_result(result: QueryResult, output: OutputFormat) -> None:
    """Print rows in a format. Raises ContractError if they cannot be printed in it."""
    from cdc_lake.cli.data.query_output import csv_lines, json_text, print_table

    if output is OutputFormat.table:
        print_table(result)
    elif output is OutputFormat.csv:
        for line in csv_lines(result):
            typer.echo(for_output(line))
    else:
        typer.echo(json_text(result))


def _athena(database: str | None) -> Athena:
    from cdc_lake.profile import resolved

    athena: Athena = resolved()["athena"]
    return athena if database is None else athena.model_copy(update={"database": database})


def syntax_fault(sql: str) -> str | None:
    """Return an error with its position if the text does not begin like an SQL statement, else None.

    Only the first word is checked: Athena reports all other errors, with line and column.
    """
    sql = _CARRIAGE_RETURN.sub("\n", sql)
    text = _COMMENTS.sub("", sql)
    word = _first_word(text)
    if word.upper() in _STATEMENT_WORDS or text.startswith("("):
        return None
    before = sql[: len(sql) - len(text)]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    place = f"line {line}, column {column}"
    if not text.strip("; \t\n"):
        return f"Cannot find an SQL statement before the end of the text ({place}). Give one statement."
    near = difflib.get_close_matches(word.upper(), sorted(_STATEMENT_WORDS), n=1)
    advice = f" Did you mean {near[0]}?" if near else " A query begins with SELECT, WITH, VALUES, TABLE or SHOW."
    return f"Cannot parse the SQL: {place}: no statement begins with {word or text[0]!r}.{advice}"


def _first_word(text: str) -> str:
    found = re.match(r"\w+", text)
    return found[0] if found else ""


def read_only_fault(sql: str) -> str | None:
    """Return an error unless the text is one read-only statement, else None."""
    found = _not_reading(sql)
    if found is None:
        return None
    if found == _UNKNOWN:
        return (
            "Cannot tell whether the statement only reads: it cannot be parsed. Correct it, or add --write to run it."
        )
    if found == _SEVERAL:
        return "Cannot run several statements in one query. Run them one at a time."
    return f"Cannot run {found}: it is not a read-only statement. Add --write to run it."


def _not_reading(sql: str) -> str | None:
    """Return the statement's name if it may change something, None if it is read-only.

    _SEVERAL stands for several statements, _UNKNOWN for text without a first word.

    Text that cannot be parsed counts as read-only if it begins like a query and contains one statement: Athena reports
    its errors.
    """
    import sqlglot
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns about statements that it does not parse fully
    text = _COMMENTS.sub("", _CARRIAGE_RETURN.sub("\n", sql))
    word = _first_word(text).upper()
    try:
        parsed = sqlglot.parse(text, dialect="athena")
        statements = [each for each in parsed if each is not None and not isinstance(each, exp.Semicolon)]
    except SqlglotError:
        return _changing_unparsed(text)
    if len(statements) > 1:
        return _SEVERAL
    return _changing(statements[0], word) if statements else None


def _changing_unparsed(text: str) -> str | None:
    if re.search(r";\s*\S", text):  # also true of `;` in a string or comment: the text cannot be parsed
        return _SEVERAL
    while text.startswith("("):
        text = _COMMENTS.sub("", text[1:])
    word = _first_word(text).upper()
    return None if word in _QUERY_WORDS else word or _UNKNOWN


def _changing(statement: exp.Expr, word: str) -> str | None:
    from sqlglot import exp

    if isinstance(statement, exp.Command):
        if word == "EXPLAIN":
            return _changing_explain(statement.expression.name)
        return None if word in _READING_COMMANDS else word
    if not isinstance(statement, exp.Query | exp.Values | exp.Describe | exp.Show):
        return word
    inner = statement.find(exp.DML, exp.DDL, exp.Into)
    return None if inner is None or isinstance(inner, exp.Query) else inner.key.upper()


def _changing_explain(explained: str) -> str | None:
    # EXPLAIN only plans, but EXPLAIN ANALYZE runs the statement.
    rest = _COMMENTS.sub("", explained)
    if not re.match(r"ANALYZE\b", rest, re.IGNORECASE):
        return None
    rest = _COMMENTS.sub("", rest[len("ANALYZE") :])
    rest = _COMMENTS.sub("", re.sub(r"\AVERBOSE\b", "", rest, flags=re.IGNORECASE))
    rest = re.sub(r"\A\(\s*(FORMAT|TYPE)\s+\w+\s*(,\s*(FORMAT|TYPE)\s+\w+\s*)*\)", "", rest, flags=re.IGNORECASE)
    inner = _not_reading(rest)
    return f"EXPLAIN ANALYZE {inner}" if inner and inner != _SEVERAL else inner
