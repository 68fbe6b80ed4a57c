"""Run the SQL of `cdc-lake query` on Spark, to read earlier states of tables, or log files of merge-on-read tables."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from cdc_lake.cli.local_only import profile
from cdc_lake.contract.errors import ContractError

if TYPE_CHECKING:
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.sql import DataFrame, SparkSession
    from sqlglot import exp

    from cdc_lake.contract.objects.store import S3Location
    from cdc_lake.pipeline.pipeline_table import PipelineTable
    from resources.athena import QueryResult

MERGED = "_rt"
"""The suffix of a merge-on-read table's name that includes its log files: Hudi's real-time table."""
_SPARK_TYPES = {"string": "varchar", "int": "integer", "binary": "varbinary"}


def needs_spark(sql: str) -> bool:
    """Return whether a statement reads a real-time table in the local profile, whose engine, Trino, reads it wrongly.

    False for text that cannot be parsed: Trino reports its errors.
    """
    if profile() != "local" or MERGED not in sql.lower():
        return False
    from cdc_lake.contract.sql_tables import tables

    try:
        return any(table.name.endswith(MERGED) for table in tables(_parsed(sql)))
    except ContractError:
        return False


def run(sql: str, database: str | None, as_of: str | None) -> QueryResult:
    """Run a query in Athena's SQL on Spark; its tables are read as of an instant or time, or in their newest state.

    Raises ContractError for a table that no pipeline has, for SQL that Spark rejects, and if the state cannot be read.
    """
    from cdc_lake import reading
    from cdc_lake.contract.sql_tables import tables

    started = time.monotonic()
    spark, where = reading.session()
    tree = _parsed(sql)
    read = [_register(spark, where, node, database, as_of) for node in tables(tree)]
    return result(lambda: spark.sql(tree.sql(dialect="spark")), where, read, as_of, started)


def result(
    query: Callable[[], DataFrame],
    where: S3Location,
    tables: Sequence[PipelineTable],
    as_of: str | None,
    started: float,
) -> QueryResult:
    """Run a query of the tables' state at `as_of` and return its rows; `started` is its start by time.monotonic().

    Raises ContractError if Spark rejects the query or fails, and if a clean may have deleted files of the state while
    the query ran, because rows could be missing.
    """
    from py4j.protocol import Py4JJavaError
    from pyspark.errors import PySparkException

    from resources.athena import QueryResult

    try:
        found = query()
        rows = tuple(tuple(row) for row in _in_utc(found).collect())
    except (PySparkException, Py4JJavaError) as error:
        _require_kept(where, tables, as_of)
        raise ContractError(
            f"Cannot run the query on Spark: {_cause(error)}. Correct the statement if it is invalid. "
            "CDC_LAKE_DEBUG=1 prints Spark's whole error."
        ) from error
    _require_kept(where, tables, as_of)
    return QueryResult(_columns(found), rows, "", 0, time.monotonic() - started)


def _in_utc(found: DataFrame) -> DataFrame:
    """Return the rows with times in UTC: PySpark converts a timestamp to the time zone of this process."""
    from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

    positions = [f"c{number}" for number in range(len(found.columns))]  # names can be equal
    numbered = found.toDF(*positions)
    kinds = dict(numbered.dtypes)
    return numbered.select(
        *(F.col(name).cast("timestamp_ntz") if kinds[name] == "timestamp" else F.col(name) for name in positions)
    )


def _cause(error: PySparkException | Py4JJavaError) -> str:
    """Return the first line of Spark's own message; py4j's message only names the Java method that was called."""
    java = getattr(error, "java_exception", None)
    text = str(error) if java is None else str(java.getMessage() or java.toString())
    return text.strip().partition("\n")[0].rstrip(" .;")


def _require_kept(where: S3Location, tables: Sequence[PipelineTable], as_of: str | None) -> None:
    from cdc_lake.contract.table import history

    for table in tables if as_of is not None else ():
        history.resolve(where.store(), table.lake_prefix, str(as_of))


def _columns(found: DataFrame) -> tuple[tuple[str, str], ...]:
    """Return name and type of each column. Types have Athena's names, without arguments: `decimal`, `array`."""
    kinds = ((name, kind.partition("(")[0].partition("<")[0]) for name, kind in found.dtypes)
    return tuple((name, _SPARK_TYPES.get(kind, kind)) for name, kind in kinds)


def _register(
    spark: SparkSession, where: S3Location, node: exp.Table, database: str | None, as_of: str | None
) -> PipelineTable:
    """Create a temporary view of a table of the statement, and replace the table by the view in the statement."""
    from sqlglot import exp

    from cdc_lake import reading
    from cdc_lake.profile import resolved

    schema = node.db or database
    try:
        table = reading.table(f"{schema or resolved()['athena'].database}.{node.name}")
    except ContractError:
        if schema:
            raise
        table = reading.table(node.name)  # a name that only one pipeline has needs no database
    rows = reading.rows(spark, table, where, as_of)
    if node.name == table.view:
        rows = rows.where("NOT __deleted").drop("__deleted", reading.COMMIT_TIME, reading.FILE_NAME)
    view = f"{table.database}__{node.name}"
    rows.createOrReplaceTempView(view)
    if not node.alias:
        node.set("alias", exp.TableAlias(this=exp.to_identifier(node.name)))
    node.set("this", exp.to_identifier(view))
    node.set("db", None)
    node.set("catalog", None)
    return table


def _parsed(sql: str) -> exp.Expr:
    """Return the statement's tree with the names of its tables in lower case, as in the catalog."""
    import sqlglot
    from sqlglot.errors import ParseError, SqlglotError

    from cdc_lake.contract.sql_tables import lower_names

    logging.getLogger("sqlglot").setLevel(logging.ERROR)  # it warns about statements that it does not parse fully
    try:
        tree = sqlglot.parse_one(sql, dialect="athena")
    except SqlglotError as error:
        found = error.errors[0] if isinstance(error, ParseError) and error.errors else None
        place = f" at line {found['line']}, near {found['highlight']!r}" if found else f": {error}"
        raise ContractError(f"Cannot parse the SQL{place}. Correct the statement: Athena's SQL is Trino's.") from error
    return lower_names(tree)
