"""Read the objects of manifests as a DataFrame of verified records, each with its position."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cdc_lake.contract.objects import raw_objects
from cdc_lake.contract.objects.manifest import LandedObject, Manifest
from cdc_lake.contract.objects.store import S3Location

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
_BATCH_ROWS = 10_000


def read(spark: SparkSession, location: S3Location, manifests: Sequence[Manifest]) -> DataFrame:
    """Return all records of the manifests' objects (RECORD_SCHEMA).

    The job fails with ObjectDamagedError if an object is missing or differs from its manifest.
    """
    tasks = [(manifest.epoch, item.model_dump_json()) for manifest in manifests for item in manifest.objects]
    cores = spark.sparkContext.defaultParallelism
    slices = max(1, min(len(tasks), cores * 4))
    listed = spark.createDataFrame(tasks, "epoch int, item string").repartition(slices)
    return listed.mapInArrow(_Reader(location), RECORD_SCHEMA)


@dataclass(frozen=True)
class _Reader:
    location: S3Location

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = self.location.store()
        for batch in batches:
            for row in batch.to_pylist():
                item = LandedObject.model_validate_json(row["item"])
                records = list(raw_objects.records(store, item))
                for start in range(0, len(records), _BATCH_ROWS):
                    part = records[start : start + _BATCH_ROWS]
                    yield pa.RecordBatch.from_arrays(
                        [
                            pa.array([row["epoch"]] * len(part), pa.int32()),
                            pa.array([item.key] * len(part), pa.string()),
                            pa.array([item.partition] * len(part), pa.int32()),
                            pa.array([offset for offset, _ in part], pa.int64()),
                            pa.array([value for _, value in part], pa.binary()),
                        ],
                        schema=RECORD_ARROW_SCHEMA,
                    )
