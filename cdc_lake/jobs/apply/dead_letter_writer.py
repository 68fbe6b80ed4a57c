"""Convert the records of a batch that cannot be applied to dead letters.

decode.py, special_values.py and fold.py find these records, unavailable_values.py those that lack a TOAST value.

Executors store the values, so that they never reach the driver. jobs/landing/dead_letter_writer.py stores records that
cannot be landed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - Spark's own abbreviation

from cdc_lake.contract.asset_names import asset_name
from cdc_lake.contract.errors import TooManyDeadLettersError, UnknownColumnsError
from cdc_lake.contract.objects import dead_letters
from cdc_lake.contract.objects.dead_letters import DeadLetter
from cdc_lake.contract.objects.manifest import Manifest
from cdc_lake.contract.objects.store import S3Location
from cdc_lake.jobs.apply import raw_reader
from cdc_lake.jobs.apply.decode import OBJECT, OFFSET, PARTITION, POSITION_COLUMNS, REASON, RECORD_COLUMNS, VALUE
from cdc_lake.jobs.apply.record_fields import UNKNOWN_FIELDS

if TYPE_CHECKING:
    from cdc_lake.jobs.apply.upsert_spec import UpsertSpec


def store_values(
    spark: SparkSession, bad: DataFrame, manifests: Sequence[Manifest], spec: UpsertSpec
) -> list[DeadLetter]:
    """Store the values of a batch's unreadable records; return their dead letters, which the caller must put.

    `bad` has POSITION_COLUMNS and REASON; all letters get the newest epoch. Raises UnknownColumnsError for an
    unknown field, and TooManyDeadLettersError.
    """
    epoch = max(manifest.epoch for manifest in manifests)
    unreadable = _without_superseded(spark, bad, manifests).where(F.col(REASON).isNotNull())
    found = unreadable.limit(spec.dead_letter_limit + 1).collect()
    for row in found:
        if row[REASON].startswith(UNKNOWN_FIELDS) and spec.until is None:
            raise UnknownColumnsError(
                f"Cannot apply topic {spec.topic}, partition {row[PARTITION]}, offset {row[OFFSET]}: {row[REASON]}. "
                f"The source table {spec.source_table} changed. Nothing was applied. Materialise "
                f"{asset_name(spec.pipeline, 'source', spec.table)} to capture its schema, then run this again."
            )
    if len(found) > spec.dead_letter_limit:
        raise TooManyDeadLettersError(
            f"Cannot apply topic {spec.topic}: more than {spec.dead_letter_limit} of its records cannot be read. One "
            f"of them is in partition {found[0][PARTITION]} at offset {found[0][OFFSET]}: {found[0][REASON]}. Nothing "
            "was applied. The cause is probably a schema or a connector setting: correct it, or raise "
            "dead_letter_limit, then run this again."
        )
    if not found:
        return []
    return _put_values(_with_values(spark, unreadable, {row[OBJECT] for row in found}, manifests, spec), spec, epoch)


def _without_superseded(spark: SparkSession, bad: DataFrame, manifests: Sequence[Manifest]) -> DataFrame:
    """Drop the unreadable records of earlier epochs: the next epoch's snapshot re-sent their rows.

    Such records are often the reason for the snapshot. Their bytes stay in raw.
    """
    newest = max(manifest.epoch for manifest in manifests)
    superseded = [(item.key,) for manifest in manifests if manifest.epoch < newest for item in manifest.objects]
    if not superseded:
        return bad
    return bad.join(spark.createDataFrame(superseded, f"{OBJECT} string"), OBJECT, "left_anti")


def _with_values(
    spark: SparkSession, bad: DataFrame, objects: Set[str], manifests: Sequence[Manifest], spec: UpsertSpec
) -> DataFrame:
    """Return these records with their values, which are read again from `objects`."""
    read = [
        manifest.model_copy(update={"objects": tuple(item for item in manifest.objects if item.key in objects)})
        for manifest in manifests
    ]
    records = raw_reader.read(spark, spec.location, read, parser=None)
    values = records.select(*(F.col(name.removeprefix("__")).alias(name) for name in RECORD_COLUMNS))
    return bad.join(values, [*POSITION_COLUMNS])


def _put_values(records: DataFrame, spec: UpsertSpec, epoch: int) -> list[DeadLetter]:
    """Store the values of unreadable records of one epoch; return their dead letters, which the caller must put.

    `records` has RECORD_COLUMNS and REASON.
    """
    written = records.select(*RECORD_COLUMNS, REASON).mapInArrow(
        _ValueWriter(spec.location, spec.pipeline, spec.topic, epoch), "letter string"
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
            row[PARTITION],  # type: ignore[arg-type]  # the types are those of RECORD_COLUMNS
            row[OFFSET],  # type: ignore[arg-type]
            str(row[REASON]),
            row[VALUE],  # type: ignore[arg-type]
            str(row[OBJECT]),
            self.epoch,
        )
