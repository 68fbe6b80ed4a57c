"""Decode a topic's records when they are landed, with the decoder of the upsert.

A record that cannot be decoded is rejected. Parquet objects contain the typed rows; objects that are partitioned by
columns need the values of these columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.objects import hive_partitions, parquet_file
from cdc_lake.contract.objects.parquet_file import OWN_COLUMNS, Compression
from cdc_lake.contract.schema.captured_schema import TableSchema
from cdc_lake.contract.schema.transforms import TableTransforms
from cdc_lake.contract.schema.value_rules import PLACEHOLDER, STRICT, ValueRules
from cdc_lake.contract.source.schema_registry import RegistryLocation
from cdc_lake.contract.table.event_order import ORDER_COLUMN
from cdc_lake.jobs.apply.decode import OFFSET, PARTITION, REASON, UNAVAILABLE, VALUE, decode
from cdc_lake.jobs.apply.record_fields import RecordParser
from cdc_lake.jobs.landing.raw_formats import PARTITION_VALUES, REJECTED, TYPED, RecordFormat, Rejected

KAFKA_COLUMNS = ("kafka_value", "key", "headers")
"""The columns of a Kafka record that its typed row does not contain, but its dead letter does."""
_UNREADABLE = "unreadable"
_TEXT_SCHEMA = (
    "epoch int, object string, partition int, offset bigint, value binary, kafka_value binary, key binary, "
    "headers array<struct<key: string, value: binary>>, unreadable string"
)


@dataclass(frozen=True)
class TypedLanding:
    """How records become rows: by the captured schemas of the source table (`schema.table`) and the table's rules.

    `compression` is that of Parquet objects; None if the objects contain the records' values. `partition_by` are the
    columns whose values are in the objects' keys.
    """

    source_table: str
    compression: Compression | None
    values: ValueRules = STRICT
    partition_by: tuple[str, ...] = ()


@dataclass(frozen=True)
class AsJson:
    """A function for mapInArrow: converts Kafka records to the columns that decode() reads, with JSON values.

    A record that cannot be stored has no value, and a reason in the column `unreadable`.
    """

    epoch: int
    record_bytes: int
    registry: RegistryLocation | None
    parser: RecordParser
    transforms: TableTransforms | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Convert the values of each batch."""
        schemas = None if self.registry is None else self.registry.schemas()
        formats = RecordFormat(schemas, "json", self.record_bytes, transforms=self.transforms)
        for batch in batches:
            found = [formats.convert(value) for value in batch.column("value").to_pylist()]
            count = len(found)
            records = pa.RecordBatch.from_pydict(
                {
                    "epoch": pa.array([self.epoch] * count, pa.int32()),
                    "object": pa.array([""] * count, pa.string()),
                    "partition": batch.column("partition"),
                    "offset": batch.column("offset"),
                    "value": pa.array(
                        [None if isinstance(each, Rejected) else each.line for each in found], pa.binary()
                    ),
                    "kafka_value": batch.column("value"),
                    "key": batch.column("key"),
                    "headers": batch.column("headers"),
                    _UNREADABLE: pa.array(
                        [each.reason if isinstance(each, Rejected) else None for each in found], pa.string()
                    ),
                }
            )
            yield self.parser.with_parsed(records)


def with_typed_rows(
    records: DataFrame,
    versions: Sequence[TableSchema],
    landing: TypedLanding,
    epoch: int,
    record_bytes: int,
    registry: RegistryLocation | None,
    transforms: TableTransforms | None = None,
) -> DataFrame:
    """Return Kafka's records in order, with TYPED (the row to store), PARTITION_VALUES and REJECTED (a reason or NULL).

    PARTITION_VALUES has the texts of the partition columns, which the rows of Parquet objects do not contain. TYPED and
    PARTITION_VALUES are added only if the objects need them.

    A record with a field that is in no captured version is rejected: the caller captures the schema after it has fixed
    the range of records to land.
    """
    parser = RecordParser.of(versions, {epoch})
    text = records.mapInArrow(
        AsJson(epoch, record_bytes, registry, parser, transforms), f"{_TEXT_SCHEMA}, {parser.schema}"
    )
    decoded = decode(text, versions, landing.values, {epoch}, extra_columns=(*KAFKA_COLUMNS, _UNREADABLE))
    added = []
    if landing.compression is not None:
        added.append(_row(versions, landing, epoch).alias(TYPED))
    if landing.partition_by:
        added.append(
            F.array(*(_partition_value(name, landing) for name in landing.partition_by)).alias(PARTITION_VALUES)
        )
    return decoded.select(
        F.col(PARTITION).alias("partition"),
        F.col(OFFSET).alias("offset"),
        F.col("kafka_value").alias("value"),
        "key",
        "headers",
        *added,
        F.coalesce(_UNREADABLE, REASON).alias(REJECTED),
    )


def _row(versions: Sequence[TableSchema], landing: TypedLanding, epoch: int) -> SparkColumn:
    names = [name for name, _ in versions[-1].lake_columns() if name not in {ORDER_COLUMN, *landing.partition_by}]
    own = {
        parquet_file.UNCHANGED: F.when(F.size(UNAVAILABLE) > 0, F.col(UNAVAILABLE)),
        parquet_file.VERSION: F.lit(versions[-1].version),
        parquet_file.EPOCH: F.lit(epoch),
        parquet_file.PARTITION: F.col(PARTITION),
        parquet_file.OFFSET: F.col(OFFSET),
        parquet_file.RECORD: F.col(VALUE).cast("string"),
    }
    return F.struct(
        *(F.col(name) for name in names), *(own[name].cast(kind).alias(name) for name, kind in OWN_COLUMNS.items())
    )


def _partition_value(name: str, landing: TypedLanding) -> SparkColumn:
    """Return the text of a partition column.

    A deleted row with a text that no partition can have, or that may be too long for one, is in the partition of NULL:
    otherwise its delete would be rejected. JSON objects do not list values
    that PostgreSQL left out, so that these are in the partition of Debezium's placeholder.
    """
    text = F.col(name).cast("string")
    fits = F.octet_length(text) <= hive_partitions.safe_bytes(name)
    value = F.when(~F.col("__deleted") | (~text.isin("", *hive_partitions.NULL_TEXTS) & fits), text)
    if landing.compression is not None:
        return value
    return F.when(F.array_contains(UNAVAILABLE, name), F.lit(PLACEHOLDER)).otherwise(value)
