"""Read the rows of landed objects, Parquet or JSON, as a catalog table over these objects returns them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation
from pyspark.sql.pandas.types import to_arrow_schema

from cdc_lake.contract.objects import raw_objects
from cdc_lake.contract.objects.manifest import LandedObject, Manifest
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.contract.objects.parquet_file import EPOCH, EXTENSION, OWN_COLUMNS, RECORD
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema.captured_schema import EVENT_FIELDS, TableSchema
from cdc_lake.contract.schema.value_rules import ValueRules
from cdc_lake.contract.table import latest_rows as latest
from cdc_lake.contract.table.event_order import ORDER_COLUMN, Position
from cdc_lake.jobs.apply import json_fields, json_rows_sql, raw_reader

_BATCH_ROWS = 10_000


def latest_rows(
    spark: SparkSession,
    location: S3Location,
    manifests: Sequence[Manifest],
    versions: Sequence[TableSchema],
    boundary: str,
    rules: ValueRules,
) -> DataFrame:
    """Return the rows of a Parquet target's view over these manifests' objects, and the deleted rows too."""
    epoch = Position.decode(boundary).epoch
    items = [item for manifest in manifests if manifest.epoch >= epoch for item in manifest.objects]
    names = [name for item in items if (name := ObjectName.parse(item.key)) is not None]
    relation = f"landed_rows_{uuid.uuid4().hex}"
    if names and names[0].extension == EXTENSION:
        rows, select = read(spark, location, items, versions), latest.sql(versions, relation, boundary, deleted=True)
    else:
        partition_by = tuple(names[0].values()) if names else ()
        rows = _read_json(spark, location, items, versions, partition_by)
        select = json_rows_sql.latest_sql(versions, relation, boundary, rules, "spark", partition_by, deleted=True)
    rows.createTempView(relation)
    try:
        return spark.sql(select)
    finally:
        spark.catalog.dropTempView(relation)  # the returned DataFrame does not need the view any more


def read(
    spark: SparkSession, location: S3Location, items: Sequence[LandedObject], versions: Sequence[TableSchema]
) -> DataFrame:
    """Return the rows of Parquet objects with the columns of the newest schema; missing ones are NULL.

    The job fails with ObjectDamagedError if an object is missing or differs from its manifest.
    """
    lake = [(name, kind) for name, kind in versions[-1].lake_columns() if name != ORDER_COLUMN]
    own = [(name, kind) for name, kind in OWN_COLUMNS.items() if name != RECORD]
    schema = ", ".join(f"`{name}` {kind}" for name, kind in [*lake, *own])
    arrow = to_arrow_schema(spark.createDataFrame([], schema).schema)
    return raw_reader.as_rows(spark, items).mapInArrow(_Reader(location, arrow), schema)


def _read_json(
    spark: SparkSession,
    location: S3Location,
    items: Sequence[LandedObject],
    versions: Sequence[TableSchema],
    partition_by: Sequence[str],
) -> DataFrame:
    """Return the records of JSON objects with the columns of the catalog table, as read() does for Parquet."""
    newest = versions[-1]
    types = dict(newest.lake_columns())
    fields = {name: kind for name, kind in json_fields.fields(newest) if name not in partition_by}
    # A field has the case of its column at the source, a column of the catalog is in lower case.
    named = {each.name.lower(): each.name for each in (*newest.columns, *newest.dropped)}
    named |= {name.lower(): name for name in EVENT_FIELDS}
    lines = raw_reader.as_rows(spark, items).mapInArrow(
        _LineReader(location, tuple(partition_by)),
        ", ".join(f"`{name}` string" for name in ("__line", EPOCH, *partition_by)),
    )
    texts = F.from_json("__line", ", ".join(f"`{named[name]}` string" for name in fields))
    return lines.withColumn("__fields", texts).select(
        *(F.col("__fields").getField(named[name]).cast(kind).alias(name) for name, kind in fields.items()),
        *(F.col(name).cast(types[name]).alias(name) for name in partition_by),
        F.col(EPOCH).cast("int").alias(EPOCH),
    )


@dataclass(frozen=True)
class _LineReader:
    """Reads the lines of JSON objects, with the epoch and the partition values of their keys, all as texts."""

    location: S3Location
    partition_by: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = self.location.store()
        for batch in batches:
            for text in batch.column("json").to_pylist():
                item = LandedObject.model_validate_json(text)
                lines = [value.decode() for _, value in raw_objects.records(store, item)]
                values = _key_values(item)
                columns = [lines, *([values[name]] * len(lines) for name in (EPOCH, *self.partition_by))]
                arrays = [pa.array(column, pa.string()) for column in columns]
                table = pa.table(arrays, names=["__line", EPOCH, *self.partition_by])
                yield from table.to_batches(max_chunksize=_BATCH_ROWS)


def _repeated(value: str | None, count: int, kind: pa.DataType) -> pa.Array:
    return pa.nulls(count, kind) if value is None else pa.array([value] * count, pa.string()).cast(kind)


def _key_values(item: LandedObject) -> dict[str, str | None]:
    """Return the values in an object's key: epoch and partition columns."""
    name = ObjectName.parse(item.key)
    return {} if name is None else {EPOCH: str(name.epoch), **name.values()}


@dataclass(frozen=True)
class _Reader:
    location: S3Location
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = self.location.store()
        for batch in batches:
            for text in batch.column("json").to_pylist():
                item = LandedObject.model_validate_json(text)
                rows = pq.read_table(BytesIO(raw_objects.body(store, item)))
                stored, values = set(rows.column_names), _key_values(item)
                columns = [
                    rows.column(field.name).cast(field.type)
                    if field.name in stored
                    else _repeated(values.get(field.name), rows.num_rows, field.type)
                    for field in self.schema
                ]
                yield from pa.table(columns, schema=self.schema).to_batches(max_chunksize=_BATCH_ROWS)
