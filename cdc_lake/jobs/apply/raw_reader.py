"""Read the objects of manifests as a DataFrame of verified records, each with its position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pydantic import BaseModel
from pyspark.sql import DataFrame, SparkSession

from cdc_lake.contract.objects import raw_objects
from cdc_lake.contract.objects.manifest import LandedObject, Manifest
from cdc_lake.contract.objects.store import ObjectStore, S3Location
from cdc_lake.jobs.apply.record_fields import RecordParser

RECORD_SCHEMA = "epoch int, object string, partition int, offset bigint, value binary"
RECORD_ARROW_SCHEMA = pa.schema(
    [
        ("epoch", pa.int32()),
        ("object", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("value", pa.binary()),
    ]
)
_BATCH_ROWS = 1_000
"""With 10,000, the collector of Python's cyclic garbage takes as long as parsing: each record has several objects."""


def read(
    spark: SparkSession, location: S3Location, manifests: Sequence[Manifest], parser: RecordParser | None
) -> DataFrame:
    """Return all records of the manifests' objects (RECORD_SCHEMA); with a parser, its columns, and NULL as the value.

    The job fails with ObjectDamagedError if an object is missing or differs from its manifest.
    """
    items = [(manifest.epoch, item) for manifest in manifests for item in manifest.objects]
    slices = _slices(spark, len(items))
    # Each Spark partition has one row, the number of its slice: distributing the items as rows would need another job.
    numbers = spark.range(0, slices, 1, slices)
    reader = _Reader(location, parser, [items[number::slices] for number in range(slices)])
    return numbers.mapInArrow(reader, RECORD_SCHEMA if parser is None else f"{RECORD_SCHEMA}, {parser.schema}")


def as_rows(spark: SparkSession, items: Sequence[BaseModel]) -> DataFrame:
    """Return the items as JSON in the column `json`, distributed over Spark's tasks."""
    rows = [(item.model_dump_json(),) for item in items]
    return spark.createDataFrame(rows, "json string").repartition(_slices(spark, len(rows)))


def _slices(spark: SparkSession, count: int) -> int:
    """Return the number of Spark partitions for this many items."""
    return max(1, min(count, spark.sparkContext.defaultParallelism * 4))


@dataclass(frozen=True)
class _Reader:
    location: S3Location
    parser: RecordParser | None
    slices: Sequence[Sequence[tuple[int, LandedObject]]]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = self.location.store()
        for batch in batches:
            for number in batch.column("id").to_pylist():
                for epoch, item in self.slices[number]:
                    yield from self._records(store, epoch, item)

    def _records(self, store: ObjectStore, epoch: int, item: LandedObject) -> Iterator[pa.RecordBatch]:
        records = list(raw_objects.records(store, item))
        for start in range(0, len(records), _BATCH_ROWS):
            part = records[start : start + _BATCH_ROWS]
            columns = [
                pa.array([epoch] * len(part), pa.int32()),
                pa.array([item.key] * len(part), pa.string()),
                pa.array([item.partition] * len(part), pa.int32()),
                pa.array([offset for offset, _ in part], pa.int64()),
                pa.array([value for _, value in part], pa.binary()),
            ]
            found = pa.RecordBatch.from_arrays(columns, schema=RECORD_ARROW_SCHEMA)
            yield found if self.parser is None else _without_values(self.parser.with_parsed(found))


def _without_values(records: pa.RecordBatch) -> pa.RecordBatch:
    """Return records whose values are NULL, so that their bytes are not sent to Spark."""
    place = records.schema.get_field_index("value")
    return records.set_column(place, "value", pa.nulls(records.num_rows, pa.binary()))
