"""Decode a topic's records to the typed rows of Parquet objects, with the decoder of the upsert."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.objects import parquet_file
from cdc_lake.contract.objects.parquet_file import OWN_COLUMNS, Compression
from cdc_lake.contract.schema.captured_schema import TableSchema
from cdc_lake.contract.schema.value_rules import STRICT, ValueRules
from cdc_lake.contract.source.schema_registry import RegistryLocation
from cdc_lake.contract.table.event_order import ORDER_COLUMN
from cdc_lake.jobs.apply.decode import OFFSET, PARTITION, REASON, UNAVAILABLE, VALUE, decode
from cdc_lake.jobs.landing.raw_formats import REJECTED, TYPED, RecordFormat, Rejected

KAFKA_COLUMNS = ("kafka_value", "key", "headers")
"""The columns of a Kafka record that its typed row does not contain, but its dead letter does."""
_UNREADABLE = "unreadable"
_TEXT_SCHEMA = (
    "epoch int, object string, partition int, offset bigint, value binary, kafka_value binary, key binary, "
    "headers array<struct<key: string, value: binary>>, unreadable string"
)


@dataclass(frozen=True)
class TypedLanding:
    """How records become rows: by the captured schemas of the source table (`schema.table`) and the table's rules."""

    source_table: str
    compression: Compression
    values: ValueRules = STRICT


@dataclass(frozen=True)
class AsJson:
    """A function for mapInArrow: converts Kafka records to the columns that decode() reads, with the value as JSON.

    A record that cannot be stored has no value, and a reason in the column `unreadable`.
    """

    epoch: int
    record_bytes: int
    registry: RegistryLocation | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Convert the values of each batch."""
        schemas = None if self.registry is None else self.registry.schemas()
        formats = RecordFormat(schemas, "json", self.record_bytes)
        for batch in batches:
            found = [formats.convert(value) for value in batch.column("value").to_pylist()]
            count = len(found)
            yield pa.RecordBatch.from_pydict(
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


def typed(
    records: DataFrame,
    versions: Sequence[TableSchema],
    landing: TypedLanding,
    epoch: int,
    record_bytes: int,
    registry: RegistryLocation | None,
) -> DataFrame:
    """Return Kafka's records with the columns TYPED (the row to store) and REJECTED (why there is none), in order.

    A record with a field that is in no captured version is rejected: the caller captures the schema after it has fixed
    the range of records to land.
    """
    text = records.mapInArrow(AsJson(epoch, record_bytes, registry), _TEXT_SCHEMA)
    decoded = decode(text, versions, landing.values, {epoch}, carried=(*KAFKA_COLUMNS, _UNREADABLE))
    names = [name for name, _ in versions[-1].lake_columns() if name != ORDER_COLUMN]
    own = {
        parquet_file.UNCHANGED: F.when(F.size(UNAVAILABLE) > 0, F.col(UNAVAILABLE)),
        parquet_file.VERSION: F.lit(versions[-1].version),
        parquet_file.EPOCH: F.lit(epoch),
        parquet_file.PARTITION: F.col(PARTITION),
        parquet_file.OFFSET: F.col(OFFSET),
        parquet_file.RECORD: F.col(VALUE).cast("string"),
    }
    row = F.struct(
        *(F.col(name) for name in names), *(own[name].cast(kind).alias(name) for name, kind in OWN_COLUMNS.items())
    )
    return decoded.select(
        F.col(PARTITION).alias("partition"),
        F.col(OFFSET).alias("offset"),
        F.col("kafka_value").alias("value"),
        "key",
        "headers",
        row.alias(TYPED),
        F.coalesce(_UNREADABLE, REASON).alias(REJECTED),
    )
