"""The part of land that runs on executors: Arrow batches of Kafka records to offset-named objects.

Here: cutting a range into objects, putting each under a condition, recognising one's own. Not here:
which range, and the manifest (land.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import pyarrow as pa

from cdc_lake.contract import json_lines
from cdc_lake.contract.conditional import put_or_get
from cdc_lake.contract.dead_letters import DeadLetter
from cdc_lake.contract.errors import ObjectConflictError
from cdc_lake.contract.manifest import LandedObject
from cdc_lake.contract.names import ObjectName
from cdc_lake.contract.store import ObjectStore, S3Location

WRITTEN_SCHEMA = "kind string, json string"


@dataclass
class _Pending:
    """The records that the next object will hold."""

    partition: int = -1
    offsets: list[int] = field(default_factory=list)
    values: list[bytes] = field(default_factory=list)
    bytes: int = 0


@dataclass(frozen=True)
class RawWriter:
    """A function for mapInArrow: record batches (partition, offset, value) to rows of WRITTEN_SCHEMA.

    Each row is a LandedObject or a DeadLetter as JSON.
    """

    location: S3Location
    pipeline: str
    topic: str
    attempt: str
    records_per_object: int
    bytes_per_object: int

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Write every record that arrives; one row for each object and dead letter."""
        rows = list(self._rows(batches))
        yield pa.RecordBatch.from_pydict(
            {"kind": [kind for kind, _ in rows], "json": [text for _, text in rows]},
            schema=pa.schema([("kind", pa.string()), ("json", pa.string())]),
        )

    def _rows(self, batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, str]]:
        store = self.location.store()
        pending = _Pending()
        for batch in batches:
            columns = (batch.column(index).to_pylist() for index in range(3))
            for partition, offset, value in zip(*columns, strict=True):
                if pending.offsets and self._full(pending, partition):
                    yield "object", self._put(store, pending).model_dump_json()
                    pending = _Pending()
                reason = json_lines.unframeable(value)
                if reason is not None:
                    letter = DeadLetter.of(self.topic, partition, offset, reason, value)
                    yield "dead_letter", letter.model_dump_json()
                    continue
                pending.partition = partition
                pending.offsets.append(offset)
                pending.values.append(value)
                pending.bytes += len(value) + 1
        if pending.offsets:
            yield "object", self._put(store, pending).model_dump_json()

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
        )
        body = json_lines.frame(pending.values)
        digest = hashlib.sha256(body).hexdigest()
        # What was there is one's own, put by a retry whose first answer was lost, or by a run that was cut off before
        # its manifest: a topic's records at given offsets never change, so equal names mean equal content.
        stored = put_or_get(store, name.key, body, {"attempt": self.attempt, "sha256": digest})
        if stored.body != body:
            raise ObjectConflictError(
                f"object {name.key} exists with other content than the topic holds at these offsets: something else "
                f"writes below this prefix, or the topic was made again; nothing was committed. Compare it with "
                f"`cdc-lake topic peek {self.topic}`, then move it away or run `cdc-lake reset {self.pipeline}`"
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
            runs=tuple(runs(pending.offsets)),
        )


def runs(offsets: Iterable[int]) -> Iterator[tuple[int, int]]:
    """Ascending offsets as pairs of first offset and length of each unbroken run."""
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
