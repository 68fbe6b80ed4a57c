"""Write Arrow batches of Kafka records to objects named by offset; runs on executors of the land job."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from cdc_lake.contract import failpoints
from cdc_lake.contract.errors import ObjectConflictError, TooManyDeadLettersError
from cdc_lake.contract.objects import dead_letters, json_lines
from cdc_lake.contract.objects.conditional_put import put_or_get
from cdc_lake.contract.objects.dead_letters import DeadLetter
from cdc_lake.contract.objects.manifest import LandedObject, LastRecord
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.contract.objects.store import ObjectStore, S3Location
from cdc_lake.contract.source.topic_records import fingerprint

WRITTEN_SCHEMA = "kind string, json string"


class SeenRecord(BaseModel):
    """A record of a partition, as executors report it: the newest one before the batch, or the newest of the batch."""

    model_config = ConfigDict(frozen=True)

    partition: int
    record: LastRecord


@dataclass
class _Pending:
    """The records of the next object."""

    partition: int = -1
    offsets: list[int] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    bytes: int = 0


@dataclass(frozen=True)
class RawWriter:
    """A function for mapInArrow: record batches (partition, offset, value, key, headers) to rows of WRITTEN_SCHEMA.

    Each row is a LandedObject, a DeadLetter whose value is already stored, or a SeenRecord, as JSON. Records before a
    partition's offset in `firsts` are already landed: they are only reported. Raises TooManyDeadLettersError for more
    than `dead_letter_limit` dead letters.
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
    firsts: Mapping[int, int] = field(default_factory=dict)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write all records; yield one row for each object, dead letter and record to compare."""
        rows = list(self._rows(batches))
        yield pa.RecordBatch.from_pydict(
            {"kind": [kind for kind, _ in rows], "json": [text for _, text in rows]},
            schema=pa.schema([("kind", pa.string()), ("json", pa.string())]),
        )

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, str]]:
        store = self.location.store()
        pending = _Pending()
        newest: dict[tuple[str, int], tuple[int, bytes | None]] = {}
        refused = 0
        for batch in batches:
            columns = (batch.column(name).to_pylist() for name in ("partition", "offset", "value"))
            for row, (partition, offset, value) in enumerate(zip(*columns, strict=True)):
                if offset < self.firsts.get(partition, 0):
                    newest["before", partition] = offset, value
                    continue
                newest["last", partition] = offset, value
                if pending.offsets and self._full(pending, partition):
                    yield "object", self._put(store, pending).model_dump_json()
                    pending = _Pending()
                reason = json_lines.rejection_reason(value, self.record_bytes)
                if reason is not None:
                    refused += 1
                    if refused > self.dead_letter_limit:
                        raise too_many_dead_letters(self.topic, self.dead_letter_limit, reason, partition, offset)
                    yield "dead_letter", self._set_aside(store, batch, row, reason).model_dump_json()
                    continue
                pending.partition = partition
                pending.offsets.append(offset)
                pending.values.append(value)
                pending.bytes += len(value) + 1
        if pending.offsets:
            yield "object", self._put(store, pending).model_dump_json()
        for (kind, partition), (offset, value) in newest.items():
            record = LastRecord(offset=offset, fingerprint=fingerprint(value))
            yield kind, SeenRecord(partition=partition, record=record).model_dump_json()

    def _set_aside(self, store: ObjectStore, batch: pa.RecordBatch, row: int, reason: str) -> DeadLetter:
        record = {name: batch.column(name)[row].as_py() for name in batch.schema.names}
        letter = DeadLetter.of(
            self.topic,
            record["partition"],
            record["offset"],
            reason,
            record["value"],
            epoch=self.epoch,
            key=record["key"],
            headers=[(header["key"], header["value"]) for header in record["headers"] or ()],
        )
        dead_letters.put_value(store, self.pipeline, letter, record["value"])
        return letter

    def _full(self, pending: _Pending, partition: int) -> bool:
        return (
            partition != pending.partition
            or len(pending.offsets) >= self.records_per_object
            or pending.bytes >= self.bytes_per_object
        )

    def _put(self, store: ObjectStore, pending: _Pending) -> LandedObject:
        name = ObjectName(
            self.pipeline,
            self.topic,
            pending.partition,
            pending.offsets[0],
            pending.offsets[-1],
            json_lines.EXTENSION,
            self.epoch,
            self.chain,
        )
        body = json_lines.join_lines(pending.values)
        digest = hashlib.sha256(body).hexdigest()
        # An existing object was written by a retry whose first answer was lost, or by a run that was interrupted before
        # its manifest: a topic's records at given offsets never change, so equal names mean equal contents.
        failpoints.reached("land.before_object")
        stored = put_or_get(store, name.key, body, {"attempt": self.attempt, "sha256": digest})
        failpoints.reached("land.after_object")
        if stored.body != body:
            raise ObjectConflictError(
                f"object {name.key} exists with other content than the topic holds at these offsets: something else "
                f"writes below this prefix, the topic was made again, or record_bytes was changed after a landing "
                f"that was cut off; nothing was committed. Compare it with `cdc-lake topic peek {self.topic}`, then "
                f"move it away (no manifest has it) or run `cdc-lake reset {self.pipeline}`"
            )
        return LandedObject(
            key=name.key,
            partition=name.partition,
            first=name.first,
            last=name.last,
            records=len(pending.values),
            bytes=len(body),
            sha256=digest,
            etag=stored.etag,
            runs=tuple(consecutive_runs(pending.offsets)),
        )


def too_many_dead_letters(topic: str, limit: int, reason: str, partition: int, offset: int) -> TooManyDeadLettersError:
    """Return the error for more dead letters than the limit, which points to a fault in the producer."""
    return TooManyDeadLettersError(
        f"more than {limit} records of topic {topic} can't be landed, the last one because {reason} (partition "
        f"{partition}, offset {offset}); nothing was committed. Look with `cdc-lake topic peek {topic}` at what writes "
        "there; if it is right so, raise dead_letter_limit in the pipeline's YAML"
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
