"""Read the records of dead letters, in the format in which the upsert reads the records of raw objects."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.dead_letters import DeadLetter
from cdc_lake.contract.objects.store import ObjectStore, S3Location
from cdc_lake.contract.schema import record_text
from cdc_lake.contract.schema.transforms import TableTransforms
from cdc_lake.contract.source.schema_registry import RegistryLocation, readable_or_bytes
from cdc_lake.jobs.apply import raw_reader


def read(
    spark: SparkSession,
    letters: Sequence[DeadLetter],
    location: S3Location,
    pipeline: str,
    registry: RegistryLocation | None,
    transforms: TableTransforms | None,
) -> DataFrame:
    """Return the letters' records in the format of raw_reader.read(), with the letter's id as the object.

    `registry` and `transforms` are those of the topic: a record that was never landed is stored as it is in Kafka.
    """
    reader = _Reader(location, pipeline, registry, transforms)
    return raw_reader.as_rows(spark, letters).mapInArrow(reader, raw_reader.RECORD_SCHEMA)


@dataclass(frozen=True)
class _Reader:
    location: S3Location
    pipeline: str
    registry: RegistryLocation | None
    transforms: TableTransforms | None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = self.location.store()
        for batch in batches:
            for text in batch.column("json").to_pylist():
                letter = DeadLetter.model_validate_json(text)
                yield pa.RecordBatch.from_pylist(
                    [
                        {
                            "epoch": letter.epoch,
                            "object": letter.id,
                            "partition": letter.partition,
                            "offset": letter.offset,
                            "value": self._value(store, letter),
                        }
                    ],
                    schema=raw_reader.RECORD_ARROW_SCHEMA,
                )

    def _value(self, store: ObjectStore, letter: DeadLetter) -> bytes | None:
        """Return a record as landing writes it; unchanged if it cannot be decoded, or if it was landed before."""
        value = readable_or_bytes(dead_letters.value_of(store, self.pipeline, letter), self.registry)
        if value is None or self.transforms is None or letter.object is not None:
            return value
        try:
            return record_text.landed(value.decode(), self.transforms).encode()
        except (ValueError, RecursionError):
            return value
