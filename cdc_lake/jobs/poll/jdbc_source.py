"""Read queries of the source with Spark's JDBC reader, large tables in ranges of pages."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from cdc_lake.contract.errors import SourceUnreadableError
from cdc_lake.contract.source.source_access import SourceAccess
from cdc_lake.contract.sql_tokens import for_jdbc
from cdc_lake.jobs.poll import record_sql

CTID = "record_ctid"
"""The column of a query that is read in ranges, with the row's ctid."""
_DRIVER_ERROR = re.compile(r"org\.postgresql\.util\.PSQLException: (?P<message>[^\n]+)")
_TOO_LARGE = re.compile(r"RecordTooLargeException: (?P<message>The message is \d+ bytes[^\n]+?)\.?\n")
_FETCHED_ROWS = 1000
_RANGE_PAGES = 8192
"""The size of one range, 64 MB: a connection reads one range when a large table is polled for the first time."""


@contextmanager
def source_errors(action: str, table: str, *, sending: bool) -> Iterator[None]:
    """Raise SourceUnreadableError for an error of PostgreSQL's driver, and for a record that is too large for Kafka.

    `action` is the verb of the message: poll or reconcile. `sending` is true if records may have been sent.
    """
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = _DRIVER_ERROR.search(str(error)) or _TOO_LARGE.search(str(error))
        if found is None:
            raise
        state = "The topic may have only a part of the records" if sending else "Nothing was sent"
        raise SourceUnreadableError(
            f"Cannot {action} table {table}: {found['message'].strip()}. {state}. Correct the cause, and run this "
            "again: the next run sends all records."
        ) from error


def page_ranges(pages: int | None) -> list[str]:
    """Return SQL conditions that divide a table of `pages` pages into ranges; empty if one range is enough."""
    if pages is None or pages <= _RANGE_PAGES:
        return []
    starts = range(0, pages, _RANGE_PAGES)
    found = [f"{CTID} >= '({first},0)'::tid and {CTID} < '({first + _RANGE_PAGES},0)'::tid" for first in starts]
    found[-1] = found[-1].partition(" and ")[0]  # the last range has no end, because the table can grow
    return found


def read(spark: SparkSession, access: SourceAccess, query: str, ranges: Sequence[str] = ()) -> DataFrame:
    """Return the result of a query; a separate connection reads each of the `ranges`."""
    settings = {**_options(access), "sessionInitStatement": "; ".join(record_sql.SESSION)}
    query = for_jdbc(query)
    if not ranges:
        return spark.read.format("jdbc").options(**settings).option("query", query).load()
    url = settings.pop("url")
    return spark.read.jdbc(url, f"({query}) ranged", predicates=list(ranges), properties=settings)


def _options(access: SourceAccess) -> dict[str, str]:
    return {
        "url": f"jdbc:postgresql://{access.host}:{access.port}/{access.database}"
        f"?ApplicationName=cdc-lake%20poll&connectTimeout={access.connect_timeout_seconds}",
        "driver": "org.postgresql.Driver",
        "user": access.user,
        "password": access.password,
        "fetchsize": str(_FETCHED_ROWS),
        "pushDownPredicate": "true",
    }
