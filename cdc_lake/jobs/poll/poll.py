"""poll: read the rows of a window by JDBC, and write them to a Kafka topic.

PostgreSQL builds key and value of each record (record_sql.py), so that a row has the same text as in a record of
Debezium. The caller stores the poll as begun before it runs the job, and as complete after the job has returned
(contract/source/poll_state.py). The job returns after Kafka has acknowledged every record. Spark's sink writes each
record at least once.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyarrow as pa
from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import SourceUnreadableError
from cdc_lake.contract.schema import record_text
from cdc_lake.contract.schema.captured_schema import Column, TableSchema
from cdc_lake.contract.schema.sent_columns import sent_columns
from cdc_lake.contract.schema.transforms import RecordKey, TableTransforms
from cdc_lake.contract.secret_fields import OpenSettings
from cdc_lake.contract.source.poll_state import Bound
from cdc_lake.contract.source.polled_rows import PolledRows
from cdc_lake.contract.source.source_access import SourceAccess
from cdc_lake.contract.sql_tokens import for_jdbc
from cdc_lake.jobs.executor_errors import contract_errors
from cdc_lake.jobs.landing import kafka_options
from cdc_lake.jobs.poll import record_sql

KEY, VALUE = "record_key", "record_value"
_PLACE = "record_place"
_DRIVER_ERROR = re.compile(r"org\.postgresql\.util\.PSQLException: (?P<message>[^\n]+)")
_TOO_LARGE = re.compile(r"RecordTooLargeException: (?P<message>The message is \d+ bytes[^\n]+?)\.?\n")
_FETCHED_ROWS = 1000
_RANGE_PAGES = 8192
"""The size of one range, 64 MB: a connection reads one range when a large table is polled for the first time."""


@dataclass(frozen=True)
class PollSpec:
    """The input of one poll: the window [lower, upper) of the rows, its number, and the topic.

    `schema` is the captured schema, and `changes` are the transforms that landing applies to the records. `record_key`
    is the records' key, if it is not the schema's. `access` has the salt of hashed columns. `kafka` are options of
    Spark's Kafka sink without their prefix `kafka.`. `pages` is the number of pages of an ordinary table, which is read
    in ranges of pages; None to read it as one range.
    """

    access: SourceAccess
    rows: PolledRows
    schema: TableSchema
    topic: str
    kafka: OpenSettings
    number: int
    lower: Bound | None
    upper: Bound
    pages: int | None = None
    changes: TableTransforms | None = None
    record_key: RecordKey | None = None


@dataclass(frozen=True)
class PollReport:
    """The result of one poll: the number of ranges that were read, and the duration."""

    ranges: int
    seconds: float


@contract_errors()
def run(spark: SparkSession, spec: PollSpec) -> PollReport:
    """Write the rows of the window to the topic. Raises SourceUnreadableError."""
    started = time.monotonic()
    event = record_sql.event_fields(
        spec.access.database, spec.schema.table, spec.number, int(spec.upper.at.timestamp() * 1000)
    )
    columns = [each.sent for each in sent_columns(spec.schema.columns, spec.changes)]
    key = spec.record_key or RecordKey(spec.schema.key)
    ranges = page_ranges(spec.pages) if spec.rows.divisible and spec.lower is None else []
    place = f", q.ctid as {_PLACE}" if ranges else ""
    query = (
        f"select {record_sql.key_sql(key, columns)} as {KEY},"  # noqa: S608 - built from checked names
        f" {record_sql.value_sql(columns, event)} as {VALUE}{place}"
        f" from {spec.rows.relation} q where {spec.rows.window(spec.lower, spec.upper)}"
    )
    with source_errors(spec.schema.table):
        records = read(spark, spec.access, query, ranges)
        failpoints.reached("poll.before_records")
        records = records.select(KEY, VALUE)
        if spec.schema.has_hashes:
            records = records.mapInArrow(HashedValues(columns, spec.access.hash_salt), f"{KEY} string, {VALUE} string")
        send(spark, records, spec.topic, spec.kafka)
    failpoints.reached("poll.after_records")
    return PollReport(len(ranges) or 1, time.monotonic() - started)


@dataclass(frozen=True)
class HashedValues:
    """A function for mapInArrow: hashes the values of hashed columns in the records' texts.

    The salt is sent to the executors in a pickled function, as in SourceAccess.
    """

    columns: Sequence[Column]
    salt: str = field(repr=False)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Change the column VALUE."""
        for batch in batches:
            texts = [record_text.with_hashes(text, self.columns, self.salt) for text in batch.column(VALUE).to_pylist()]
            yield pa.RecordBatch.from_arrays([batch.column(KEY), pa.array(texts, pa.string())], names=[KEY, VALUE])


@contextmanager
def source_errors(table: str) -> Iterator[None]:
    """Raise SourceUnreadableError for an error of PostgreSQL's driver, and for a record that is too large for Kafka."""
    try:
        yield
    except (PySparkException, Py4JJavaError) as error:
        found = _DRIVER_ERROR.search(str(error)) or _TOO_LARGE.search(str(error))
        if found is None:
            raise
        raise SourceUnreadableError(
            f"Cannot poll {table}: {found['message'].strip()}. The poll is not complete, and the next run repeats it."
        ) from error


def page_ranges(pages: int | None) -> list[str]:
    """Return SQL conditions that divide a table of `pages` pages into ranges; empty if one range is enough."""
    if pages is None or pages <= _RANGE_PAGES:
        return []
    starts = range(0, pages, _RANGE_PAGES)
    found = [f"{_PLACE} >= '({first},0)'::tid and {_PLACE} < '({first + _RANGE_PAGES},0)'::tid" for first in starts]
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


def send(spark: SparkSession, records: DataFrame, topic: str, kafka: Mapping[str, str]) -> None:
    """Write records (key and value as text) to a topic; return after Kafka has acknowledged all of them."""
    key, value = (F.col(name).cast("binary") for name in records.columns)
    options = {**kafka_options.options(spark, kafka), "kafka.acks": "all", "topic": topic}
    records.select(key.alias("key"), value.alias("value")).write.format("kafka").options(**options).save()


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
