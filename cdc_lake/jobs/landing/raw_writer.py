"""Write Arrow batches of Kafka records to objects named by offset; runs on executors of the land job."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import ObjectConflictError, reset_advice
from cdc_lake.contract.objects.conditional_put import put_or_get
from cdc_lake.contract.objects.manifest import LandedObject, LastRecord
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.contract.objects.parquet_file import Compression
from cdc_lake.contract.objects.store import ObjectStore, S3Location
from cdc_lake.contract.schema.transforms import TableTransforms
from cdc_lake.contract.source.schema_registry import RegistryLocation
from cdc_lake.contract.source.topic_records import fingerprint
from cdc_lake.jobs.landing import dead_letter_writer
from cdc_lake.jobs.landing.raw_formats import Folders, LandingFormat, RawRecord, RecordFormat, Rejected

WRITTEN_SCHEMA = "kind string, json string"


class SeenRecord(BaseModel):
    """A record of a partition, as executors report it: the newest one before the batch, or the newest of the batch."""

    model_config = ConfigDict(frozen=True)

    partition: int
    record: LastRecord


@dataclass
class _OpenObject:
    """The records of the next object of one partition and its folders, which is not written yet."""

    offsets: list[int] = field(default_factory=list)
    records: list[RawRecord] = field(default_factory=list)
    bytes: int = 0


@dataclass(frozen=True)
class RawWriter:
    """A function for mapInArrow: converts batches (partition, offset, value, key, headers) to rows of WRITTEN_SCHEMA.

    Decoded batches also have the columns of typed_rows.with_typed_rows(). Each row is a LandedObject, a DeadLetter
    whose value is already stored, or a SeenRecord, as JSON. Records before a partition's offset in `first_offsets` are
    already landed: they are only reported. Raises TooManyDeadLettersError for more than `dead_letter_limit` dead
    letters.
    """

    location: S3Location
    pipeline: str
    topic: str
    attempt: str
    records_per_object: int
    bytes_per_object: int
    epoch: int = 0
    record_bytes: int = 8 * 2**20
    dead_letter_limit: int = 1000
    chain: str = ""
    first_offsets: Mapping[int, int] = field(default_factory=dict)
    landing: LandingFormat = "json"
    registry: RegistryLocation | None = None
    compression: Compression | None = None
    partition_by: Sequence[str] = ()
    transforms: TableTransforms | None = None

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write all records; yield one row for each object, dead letter and SeenRecord."""
        rows = list(self._rows(batches))
        yield pa.RecordBatch.from_pydict(
            {"kind": [kind for kind, _ in rows], "json": [text for _, text in rows]},
            schema=pa.schema([("kind", pa.string()), ("json", pa.string())]),
        )

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, str]]:
        store = self.location.store()
        schemas = None if self.registry is None else self.registry.schemas()
        formats = RecordFormat(
            schemas, self.landing, self.record_bytes, self.compression, self.partition_by, self.transforms
        )
        open_objects: dict[Folders, _OpenObject] = {}
        current, size = -1, 0
        newest: dict[tuple[str, int], tuple[int, bytes | None]] = {}
        rejected_count = 0
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("partition", "offset", "value"))
            rows = zip(*columns, formats.records(batch), strict=True)
            for row, (partition, offset, value, (record, folders)) in enumerate(rows):
                if offset < self.first_offsets.get(partition, 0):
                    newest["before", partition] = offset, value
                    continue
                newest["last", partition] = offset, value
                if isinstance(record, Rejected):
                    reason = record.reason
                    rejected_count += 1
                    if rejected_count > self.dead_letter_limit:
                        raise dead_letter_writer.too_many(self.topic, self.dead_letter_limit, reason, partition, offset)
                    letter = dead_letter_writer.write(store, self.pipeline, self.topic, self.epoch, batch, row, reason)
                    yield "dead_letter", letter.model_dump_json()
                    continue
                ready = list(open_objects) if partition != current else self._ready(open_objects, size, folders, record)
                for each in ready:
                    size -= open_objects[each].bytes
                    yield "object", self._put(store, formats, current, each, open_objects.pop(each)).model_dump_json()
                current, size = partition, size + record.size
                target = open_objects.setdefault(folders, _OpenObject())
                target.offsets.append(offset)
                target.records.append(record)
                target.bytes += record.size
        for each in list(open_objects):
            yield "object", self._put(store, formats, current, each, open_objects.pop(each)).model_dump_json()
        for (kind, partition), (offset, value) in newest.items():
            seen = LastRecord(offset=offset, fingerprint=fingerprint(value))
            yield kind, SeenRecord(partition=partition, record=seen).model_dump_json()

    def _ready(
        self, open_objects: Mapping[Folders, _OpenObject], size: int, folders: Folders, record: RawRecord
    ) -> list[Folders]:
        """Return the folders of the objects to write before the next record; `size` is that of all open objects."""
        if folders in open_objects and self._is_full(open_objects[folders], record):
            return [folders]
        if size >= self.bytes_per_object:
            return [max(open_objects, key=lambda each: open_objects[each].bytes)]
        return []

    def _is_full(self, content: _OpenObject, record: RawRecord) -> bool:
        return (
            record.schema != content.records[0].schema
            or len(content.offsets) >= self.records_per_object
            or content.bytes >= self.bytes_per_object
        )

    def _put(
        self, store: ObjectStore, formats: RecordFormat, partition: int, folders: Folders, content: _OpenObject
    ) -> LandedObject:
        name = ObjectName(
            self.pipeline,
            self.topic,
            partition,
            content.offsets[0],
            content.offsets[-1],
            formats.extension,
            self.epoch,
            self.chain,
            folders,
        )
        body = formats.join(content.records)
        digest = hashlib.sha256(body).hexdigest()
        # An existing object was written by a retry whose first answer was lost, or by a run that was interrupted before
        # its manifest: a topic's records at given offsets never change, so equal names mean equal contents.
        failpoints.reached("land.before_object")
        stored = put_or_get(store, name.key, body, {"attempt": self.attempt, "sha256": digest})
        failpoints.reached("land.after_object")
        if stored.body != body:
            raise ObjectConflictError(
                f"Cannot write object {name.key}: it exists, and its content differs from the topic's records at these "
                f"offsets. Another program writes below this prefix, the topic was re-created, or record_bytes or the "
                f"transforms were changed after an interrupted landing. Nothing was committed. Compare it with "
                f"`cdc-lake topic peek {self.topic}`, then delete it (no manifest contains it), or "
                f"{reset_advice(self.pipeline)}."
            )
        return LandedObject(
            key=name.key,
            partition=name.partition,
            first=name.first,
            last=name.last,
            records=len(content.records),
            bytes=len(body),
            sha256=digest,
            etag=stored.etag,
            runs=tuple(consecutive_runs(content.offsets)),
        )


def consecutive_runs(offsets: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Yield first offset and length of each run of consecutive offsets; the input is ascending."""
    first = length = None
    for offset in offsets:
        if first is not None and length is not None and offset == first + length:
            length += 1
            continue
        if first is not None and length is not None:
            yield first, length
        first, length = offset, 1
    if first is not None and length is not None:
        yield first, length
