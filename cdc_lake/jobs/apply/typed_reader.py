"""Read the typed rows of Parquet objects, as a catalog table over these objects returns them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

from cdc_lake.contract.objects import raw_objects
from cdc_lake.contract.objects.manifest import LandedObject, Manifest
from cdc_lake.contract.objects.parquet_file import OWN_COLUMNS, RECORD
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.contract.schema.captured_schema import TableSchema
from cdc_lake.contract.table import latest_rows as latest
from cdc_lake.contract.table.event_order import ORDER_COLUMN, Position

_BATCH_ROWS = 10_000


def latest_rows(
    spark: SparkSession,
    location: S3Location,
    manifests: Sequence[Manifest],
    versions: Sequence[TableSchema],
    boundary: str,
) -> DataFrame:
    """Return the rows of a Parquet target's view over these manifests' objects, and the deleted rows too."""
    epoch = Position.decode(boundary).epoch
    rows = read(spark, location, [each for each in manifests if each.epoch >= epoch], versions)
    name = f"landed_rows_{uuid.uuid4().hex}"
    rows.createTempView(name)
    try:
        return spark.sql(latest.sql(versions, f"`{name}`", boundary, deleted=True))
    finally:
        spark.catalog.dropTempView(name)  # the returned DataFrame does not need the view any more


def read(
    spark: SparkSession, location: S3Location, manifests: Sequence[Manifest], versions: Sequence[TableSchema]
) -> DataFrame:
    """Return the rows of the manifests' objects with the columns of the newest schema; missing ones are NULL.

    The job fails with ObjectDamagedError if an object is missing or differs from its manifest.
    """
    lake = [(name, kind) for name, kind in versions[-1].lake_columns() if name != ORDER_COLUMN]
    own = [(name, kind) for name, kind in OWN_COLUMNS.items() if name != RECORD]
    schema = ", ".join(f"`{name}` {kind}" for name, kind in [*lake, *own])
    items = [(item.model_dump_json(),) for manifest in manifests for item in manifest.objects]
    slices = max(1, min(len(items), spark.sparkContext.defaultParallelism * 4))
    listed = spark.createDataFrame(items, "item string").repartition(slices)
    return listed.mapInArrow(_Reader(location, to_arrow_schema(spark.createDataFrame([], schema).schema)), schema)


@dataclass(frozen=True)
class _Reader:
    location: S3Location
    schema: pa.Schema

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = self.location.store()
        for batch in batches:
            for text in batch.column("item").to_pylist():
                body = raw_objects.body(store, LandedObject.model_validate_json(text))
                rows = pq.read_table(BytesIO(body))
                held = set(rows.column_names)
                columns = [
                    rows.column(field.name).cast(field.type)
                    if field.name in held
                    else pa.nulls(rows.num_rows, field.type)
                    for field in self.schema
                ]
                yield from pa.table(columns, schema=self.schema).to_batches(max_chunksize=_BATCH_ROWS)
