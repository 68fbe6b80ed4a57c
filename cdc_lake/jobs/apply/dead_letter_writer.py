"""The part of dead-lettering that runs on executors: values of unreadable records to the store, never to the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.dead_letters import DeadLetter
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.jobs.apply.decode import OBJECT, OFFSET, PARTITION, REASON, RECORD_COLUMNS, VALUE


def put_values(records: DataFrame, location: S3Location, pipeline: str, topic: str, epoch: int) -> list[DeadLetter]:
    """Store the values of unreadable records of one epoch, and return their dead letters, which are still to be put.

    `records` has RECORD_COLUMNS and REASON.
    """
    written = records.select(*RECORD_COLUMNS, REASON).mapInArrow(
        _ValueWriter(location, pipeline, topic, epoch), "letter string"
    )
    return [DeadLetter.model_validate_json(row["letter"]) for row in written.collect()]


@dataclass(frozen=True)
class _ValueWriter:
    location: S3Location
    pipeline: str
    topic: str
    epoch: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        store = self.location.store()
        for batch in batches:
            letters = []
            for row in batch.to_pylist():
                letter = self._letter(row)
                dead_letters.put_value(store, self.pipeline, letter, row[VALUE])
                letters.append(letter.model_dump_json())
            yield pa.RecordBatch.from_pydict({"letter": pa.array(letters, pa.string())})

    def _letter(self, row: dict[str, object]) -> DeadLetter:
        return DeadLetter.of(
            self.topic,
            row[PARTITION],  # type: ignore[arg-type]  # as RECORD_COLUMNS has it
            row[OFFSET],  # type: ignore[arg-type]
            str(row[REASON]),
            row[VALUE],  # type: ignore[arg-type]
            str(row[OBJECT]),
            self.epoch,
        )
