"""The part of dead-lettering that runs on executors: values of unreadable records to the store, never to the driver."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.dead_letters import DeadLetter
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.jobs.apply.decode import OBJECT, OFFSET, PARTITION, PLACE, REASON, VALUE


def keep_values(records: DataFrame, location: S3Location, pipeline: str, topic: str, epoch: int) -> list[DeadLetter]:
    """Keep the values of unreadable records of one epoch (columns PLACE and REASON); their letters, still to be put."""
    kept = records.select(*PLACE, REASON).mapInArrow(_Keeper(location, pipeline, topic, epoch), "letter string")
    return [DeadLetter.model_validate_json(row["letter"]) for row in kept.collect()]


@dataclass(frozen=True)
class _Keeper:
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
                dead_letters.keep_value(store, self.pipeline, letter, row[VALUE])
                letters.append(letter.model_dump_json())
            yield pa.RecordBatch.from_pydict({"letter": pa.array(letters, pa.string())})

    def _letter(self, row: dict[str, object]) -> DeadLetter:
        return DeadLetter.of(
            self.topic,
            row[PARTITION],  # type: ignore[arg-type]  # as PLACE has it
            row[OFFSET],  # type: ignore[arg-type]
            str(row[REASON]),
            row[VALUE],  # type: ignore[arg-type]
            str(row[OBJECT]),
            self.epoch,
        )
