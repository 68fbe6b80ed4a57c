"""The lake's rows and the events of raw objects and topics, with the columns in which verify compares both sides.

A row's values are named c0, c1, … in the schema's order, so that they do not conflict with verify's own columns.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.schema.captured_schema import Column, TableSchema
from cdc_lake.contract.source.schema_registry import RegistryLocation, readable_or_bytes
from cdc_lake.contract.table.event_order import ORDER_COLUMN
from cdc_lake.jobs import lake_state
from cdc_lake.jobs.apply import raw_reader, schema_migration, unavailable_values
from cdc_lake.jobs.apply.decode import REASON, decode
from cdc_lake.jobs.apply.record_fields import RecordParser, parse
from cdc_lake.jobs.lake_state import LakeState
from cdc_lake.jobs.landing import kafka_options
from cdc_lake.jobs.verify import source_values
from cdc_lake.jobs.verify.key_filter import filter_by_key
from cdc_lake.jobs.verify.snapshot_visibility import visible_at
from cdc_lake.jobs.verify.spec import KafkaRange, VerifySpec

DELETED = "deleted"
VISIBLE = "visible"
REJECTED = "rejected"
"""The source's values that the value rules send to the dead letters: a map from column names to texts, NULL if there is
no such value."""
ORDER = "position"


def names(schema: TableSchema) -> list[str]:
    """Return the names of the schema's columns in the compared rows."""
    return [f"c{number}" for number in range(len(schema.columns))]


def key_names(schema: TableSchema) -> list[str]:
    """Return the names of the key's columns in the compared rows, in the schema's order."""
    return [name for name, column in zip(names(schema), schema.columns, strict=True) if column.name in schema.key]


def no_rejections() -> SparkColumn:
    """Return the column REJECTED for rows of the lake and of events, which is always NULL."""
    return F.lit(None).cast("map<string,string>").alias(REJECTED)


def lake_rows(spark: SparkSession, spec: VerifySpec, state: LakeState | None, *, migrated: bool = False) -> DataFrame:
    """Return the table's rows as of a commit, including deleted rows, with their values, DELETED, VISIBLE and ORDER.

    A column that the table did not have at that commit is NULL, or if `migrated`, has the value that a later migration
    wrote.
    """
    if state is None:
        row_schema = ", ".join(f"`{name}` {kind}" for name, kind in spec.schema.lake_columns())
        rows = spark.createDataFrame([], row_schema)
    else:
        rows = lake_state.rows(spark, spec, state)
    return _comparable_rows(rows, spec, migrated=migrated)


def raw_rows(
    spark: SparkSession, spec: VerifySpec, manifests: Sequence[Manifest], keys: DataFrame, base: LakeState | None
) -> DataFrame:
    """Return the events of these manifests that may have one of these keys, with the columns of lake_rows().

    Values that PostgreSQL omitted are taken from earlier events, or from the table as of `base`, a state before these
    manifests. Events that cannot be decoded have a NULL ORDER. They are not filtered out: Spark would evaluate the
    filter first and then parse the record again for each field, which was most of verify's work under load.
    """
    epochs = {manifest.epoch for manifest in manifests}
    records = raw_reader.read(spark, spec.location, manifests, RecordParser.of(spec.versions, epochs))
    rows = decode(filter_by_key(records, keys, spec.schema), spec.versions, spec.values, epochs)
    if not all(version.allows_full_replica_identity for version in spec.versions):
        key = [name.lower() for name in spec.schema.key]
        rows = unavailable_values.resolve(
            rows, lambda: None if base is None else lake_state.rows(spark, spec, base), key
        )
    readable = F.when(F.col(REASON).isNull(), F.col(ORDER_COLUMN))
    return _comparable_rows(rows.withColumn(ORDER_COLUMN, readable), spec)


def later_keys(spark: SparkSession, spec: VerifySpec, later: KafkaRange) -> DataFrame:
    """Return the distinct keys of a topic's records; records without a readable key are skipped."""
    records = parse(topic_records(spark, later), RecordParser.of(spec.versions))
    rows = decode(records, spec.versions, spec.values)
    found = rows.select(
        *(
            source_values.normalized(column, F.col(column.name.lower())).alias(name)
            for name, column in zip(names(spec.schema), spec.schema.columns, strict=True)
            if column.name in spec.schema.key
        )
    )
    return found.dropna("any").distinct()


def topic_records(spark: SparkSession, later: KafkaRange) -> DataFrame:
    """Return the records of a topic with the columns of raw_reader; Avro values are converted to JSON."""
    partitions = sorted(later.ends)
    begins = {str(partition): later.begins.get(partition, 0) for partition in partitions}
    found = (
        spark.read.format("kafka")
        .options(**kafka_options.options(spark, later.kafka))
        .option("kafka.isolation.level", "read_committed")
        .option("assign", json.dumps({later.topic: partitions}))
        .option("startingOffsets", json.dumps({later.topic: begins}))
        .option("endingOffsets", json.dumps({later.topic: {str(p): later.ends[p] for p in partitions}}))
        .load()
        .select(F.lit(later.epoch).alias("epoch"), F.lit("").alias("object"), "partition", "offset", "value")
    )
    if later.registry is None:
        return found
    return found.mapInArrow(AvroToJson(later.registry), raw_reader.RECORD_SCHEMA)


@dataclass(frozen=True)
class AvroToJson:
    """A function for mapInArrow that converts the Avro values of raw_reader's records to JSON.

    A value that cannot be decoded is not changed; decode() then returns a reason for a dead letter.
    """

    registry: RegistryLocation

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Convert the column `value`."""
        for batch in batches:
            index = batch.schema.get_field_index("value")
            values = [readable_or_bytes(value, self.registry) for value in batch.column(index).to_pylist()]
            yield batch.set_column(index, "value", pa.array(values, pa.binary()))


def _comparable_rows(rows: DataFrame, spec: VerifySpec, *, migrated: bool = False) -> DataFrame:
    available = {name.lower() for name in rows.columns}

    def value(column: Column) -> SparkColumn:
        if column.name.lower() in available:
            stored = F.col(column.name.lower())  # cast below: the column's type may have been widened since
        else:
            stored = schema_migration.missing_value(column) if migrated else F.lit(None)
        return source_values.normalized(column, stored.cast(column.lake_type))

    return rows.select(
        *(value(column).alias(name) for name, column in zip(names(spec.schema), spec.schema.columns, strict=True)),
        F.coalesce("__deleted", F.lit(False)).alias(DELETED),
        visible_at(spec.point).alias(VISIBLE),
        F.col(ORDER_COLUMN).alias(ORDER),
    )
