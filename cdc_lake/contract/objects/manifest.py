"""The manifest of a landing batch: the offsets and raw objects that the batch committed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from itertools import pairwise
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SerializerFunctionWrapHandler, model_serializer, model_validator

from cdc_lake.contract.sinks.sink_lines import Framing
from cdc_lake.contract.table.event_order import Watermark


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class LastRecord(_Frozen):
    """A partition's newest committed record at the time of a batch: its offset, and the fingerprint() of its value.

    If a later batch reads another record at this offset, the topic has lost its newest records.
    """

    offset: int
    fingerprint: str


class Span(_Frozen):
    """The offsets of one partition that a batch covers: [first, next).

    `last` is the newest committed record before `next`, which can be older than `first`; None if it is unknown.
    """

    partition: int
    first: int
    next: int
    last: LastRecord | None = None

    @model_validator(mode="after")
    def _forward(self) -> Self:
        if not 0 <= self.first <= self.next:
            raise ValueError(f"partition {self.partition}: offsets {self.first} to {self.next} are not a valid range")
        if self.last is not None and not 0 <= self.last.offset < self.next:
            raise ValueError(f"partition {self.partition}: its last record is not before offset {self.next}")
        return self


class SinkPart(_Frozen):
    """The part of a sink connector's object that a manifest covers: the lines after the first `skip` lines.

    The other lines belong to another manifest, or repeat records of other objects after a restart of the connector.
    `framing` and `gzip` are the object's format. `lines` is the number of lines of the object at adoption.
    """

    framing: Framing
    gzip: bool
    skip: int = Field(ge=0)
    lines: int


class LandedObject(_Frozen):
    """One raw object: its key, offsets, size and hash.

    `runs` are pairs of first offset and record count: transaction markers have offsets too, so the offsets of an
    object's records can have gaps. `sink` is set for an object that a sink connector wrote. The connector may rewrite
    such an object with more lines, so `sha256` covers only the values of the part in `sink`, one on each line; `bytes`
    and `etag` are those of the whole object at adoption.
    """

    key: str
    partition: int
    first: int
    last: int
    records: int
    bytes: int
    sha256: str
    etag: str
    runs: tuple[tuple[int, int], ...]
    sink: SinkPart | None = None

    @model_serializer(mode="wrap")
    def _as_before(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Omit `sink` from an object that landing wrote, as manifest version 1 did."""
        fields: dict[str, Any] = handler(self)
        if self.sink is None:
            fields.pop("sink", None)
        return fields

    @model_validator(mode="after")
    def _counted(self) -> Self:
        if (contained := sum(count for _, count in self.runs)) != self.records:
            raise ValueError(
                f"{self.key}: its offset ranges contain {contained} records, but its count is {self.records}"
            )
        ends = [first + count - 1 for first, count in self.runs]
        if not ends:
            raise ValueError(f"{self.key}: it has no offset ranges")
        rising = all(end < first for end, (first, _) in zip(ends, self.runs[1:], strict=False))
        if not rising or (self.runs[0][0], ends[-1]) != (self.first, self.last):
            raise ValueError(
                f"{self.key}: its offset ranges are not ascending, or do not cover offsets {self.first} to {self.last}"
            )
        return self

    def offsets(self) -> Iterator[int]:
        """Yield the offset of each record, in order."""
        for first, count in self.runs:
            yield from range(first, first + count)


class Manifest(_Frozen):
    """One committed batch of one topic.

    Version 2 added objects that a sink connector wrote, version 3 the chain's id and the partitions' last records.
    """

    version: Literal[1, 2, 3] = 3
    chain: str = ""
    """The id of its chain (contract/objects/chain_id.py); empty for a pipeline's first chain."""
    number: int
    attempt: str
    pipeline: str
    topic: str
    topic_id: str
    epoch: int = 0
    opens: str | None = None
    """The reason why this manifest opens a new epoch; None for other manifests. A manifest that opens an epoch has no
    records, and starts at the epoch's first offsets; any other manifest starts where its predecessor ended.
    """
    spans: tuple[Span, ...]
    objects: tuple[LandedObject, ...]
    dead_letters: int = 0
    watermark: Watermark | None = None
    committed_at: datetime

    @model_validator(mode="after")
    def _versioned(self) -> Self:
        if self.version < 3 and (self.chain or any(span.last is not None for span in self.spans)):
            raise ValueError(
                f"manifests of version {self.version} cannot contain a chain id or last records of partitions"
            )
        return self

    @model_validator(mode="after")
    def _inside(self) -> Self:
        spans = {span.partition: span for span in self.spans}
        for item in self.objects:
            span = spans.get(item.partition)
            if span is None or not span.first <= item.first <= item.last < span.next:
                raise ValueError(f"{item.key} is outside the manifest's offsets")
            if item.sink is not None and self.version == 1:
                raise ValueError(f"{item.key} was written by a sink connector, which version 1 does not support")
        # Compare runs, not objects: the offsets of two objects of a sink that partitions by fields can alternate.
        runs = sorted((item.partition, *run, item.key) for item in self.objects for run in item.runs)
        for (partition, first, count, _), (following, next_first, _, key) in pairwise(runs):
            if partition == following and next_first < first + count:
                raise ValueError(f"{key} overlaps the object before it")
        if self.opens is not None and any(span.first != span.next for span in self.spans):
            raise ValueError("it opens an epoch but contains offsets; it must contain none")
        return self

    @property
    def records(self) -> int:
        """The number of records in the batch's objects."""
        return sum(item.records for item in self.objects)

    @property
    def size(self) -> int:
        """The size of the batch's objects in bytes."""
        return sum(item.bytes for item in self.objects)

    def next_offsets(self) -> Mapping[int, int]:
        """Return the next batch's first offset, by partition."""
        return {span.partition: span.next for span in self.spans}

    def last_records(self) -> Mapping[int, LastRecord]:
        """Return the newest committed record before the next batch, for each partition where it is known."""
        return {span.partition: span.last for span in self.spans if span.last is not None}

    def encode(self) -> bytes:
        """Return the manifest as JSON, as it is stored."""
        return self.model_dump_json(indent=1).encode()

    @classmethod
    def decode(cls, body: bytes) -> Self:
        """Parse a stored manifest. Raises pydantic's ValidationError if it is not consistent."""
        return cls.model_validate_json(body)
