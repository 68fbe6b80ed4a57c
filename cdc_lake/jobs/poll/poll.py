"""poll: read the rows of a window by JDBC, and write them to a Kafka topic.

PostgreSQL builds key and value of each record (record_sql.py), so that a row has the same text as in a record of
Debezium. The caller stores the poll as begun before it runs the job, and as complete after the job has returned
(contract/source/poll_state.py). The job returns after Kafka has acknowledged every record. Spark's sink writes each
record at least once.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import ContractError
from cdc_lake.contract.schema import record_text
from cdc_lake.contract.schema.captured_schema import Column, TableSchema
from cdc_lake.contract.schema.sent_columns import sent_columns
from cdc_lake.contract.schema.transforms import RecordKey, TableTransforms
from cdc_lake.contract.secret_fields import OpenSettings
from cdc_lake.contract.source.poll_state import Bound
from cdc_lake.contract.source.polled_rows import PolledRows
from cdc_lake.contract.source.source_access import SourceAccess
from cdc_lake.jobs.apply.fold import cached
from cdc_lake.jobs.executor_errors import contract_errors
from cdc_lake.jobs.landing import kafka_options
from cdc_lake.jobs.poll import jdbc_source, record_sql

KEY, VALUE = "record_key", "record_value"
_ROW_KEY = "row_key"


@dataclass(frozen=True)
class PollSpec:
    """The input of one poll: the window [lower, upper) of the rows, its number, and the topic.

    `schema` is the captured schema, and `transforms` are those that landing applies to the records. `record_key`
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
    transforms: TableTransforms | None = None
    record_key: RecordKey | None = None


@dataclass(frozen=True)
class PollReport:
    """The result of one poll: the number of ranges that were read, and the duration."""

    ranges: int
    seconds: float


@contract_errors()
def run(spark: SparkSession, spec: PollSpec) -> PollReport:
    """Write the rows of the window to the topic. Raises SourceUnreadableError, ContractError."""
    started = time.monotonic()
    event = record_sql.event_fields(
        spec.access.database, spec.schema.table, spec.number, int(spec.upper.at.timestamp() * 1000)
    )
    columns = [each.sent for each in sent_columns(spec.schema.columns, spec.transforms)]
    key = spec.record_key or RecordKey(spec.schema.key)
    ranges = jdbc_source.page_ranges(spec.pages) if spec.rows.divisible and spec.rows.from_beginning(spec.lower) else []
    selected = {KEY: record_sql.key_sql(key, columns), VALUE: record_sql.value_sql(columns, event)}
    if ranges:
        selected[jdbc_source.CTID] = "q.ctid"
    if not spec.rows.divisible:
        selected[_ROW_KEY] = record_sql.key_sql(RecordKey(spec.schema.key), columns)
    query = (
        f"select {', '.join(f'{text} as {name}' for name, text in selected.items())}"  # noqa: S608 - checked names
        f" from {spec.rows.relation} q where {spec.rows.window(spec.lower, spec.upper)}"
    )
    with jdbc_source.source_errors("poll", spec.schema.table, sending=False):
        records = jdbc_source.read(spark, spec.access, query, ranges)
    failpoints.reached("poll.before_records")
    records = records.drop(jdbc_source.CTID)
    if spec.schema.has_hashes:
        records = records.mapInArrow(HashedValues(columns, spec.access.hash_salt), records.schema)
    with ExitStack() as caches:
        if not spec.rows.divisible:  # else an index makes the key unique
            records = caches.enter_context(cached(records))
            with jdbc_source.source_errors("poll", spec.schema.table, sending=False):
                _require_unique_keys(records, spec)
        with jdbc_source.source_errors("poll", spec.schema.table, sending=True):
            send(spark, records, spec.topic, spec.kafka)
    failpoints.reached("poll.after_records")
    return PollReport(len(ranges) or 1, time.monotonic() - started)


def _require_unique_keys(records: DataFrame, spec: PollSpec) -> None:
    """Raise ContractError if a query returned several rows with one key, of which the lake would keep any one."""
    repeated = records.groupBy(_ROW_KEY).count().where("count > 1").first()
    if repeated is not None:
        raise ContractError(
            f"Cannot poll table {spec.schema.table}: its SELECT returned {repeated['count']} rows with key "
            f"{repeated[_ROW_KEY]}, and the lake has one row for each key. Nothing was sent. Change the join, or name "
            "more columns as key."
        )


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
            yield batch.set_column(batch.schema.get_field_index(VALUE), VALUE, pa.array(texts, pa.string()))


def send(spark: SparkSession, records: DataFrame, topic: str, kafka: Mapping[str, str]) -> None:
    """Write records (KEY and VALUE as text) to a topic; return after Kafka has acknowledged all of them."""
    key, value = (F.col(name).cast("binary") for name in (KEY, VALUE))
    options = {**kafka_options.options(spark, kafka), "kafka.acks": "all", "topic": topic}
    records.select(key.alias("key"), value.alias("value")).write.format("kafka").options(**options).save()
