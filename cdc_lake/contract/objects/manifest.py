"""What one landing batch committed: its manifest (design, section 4)."""

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
    """A partition's newest committed record at the time of a batch: its offset, and the fingerprint of its value
    (topic_record.fingerprint()). A later batch that finds another record there is of a topic that lost its tail.
    """

    offset: int
    fingerprint: str


class Span(_Frozen):
    """The offsets of one partition that a batch covers: [first, next).

    `last` is the newest committed record before `next`, which can be older than `first`; None where it is not known.
    """

    partition: int
    first: int
    next: int
    last: LastRecord | None = None

    @model_validator(mode="after")
    def _forward(self) -> Self:
        if not 0 <= self.first <= self.next:
            raise ValueError(f"partition {self.partition}: offsets {self.first} to {self.next} run backwards")
        if self.last is not None and not 0 <= self.last.offset < self.next:
            raise ValueError(f"partition {self.partition}: its last record is not before offset {self.next}")
        return self


class SinkPart(_Frozen):
    """Which lines of a sink connector's object are meant, and how to read them: the records after `skip` lines.

    The lines before are other objects' records, told again after a restart, or of another manifest; so may those after,
    of the `lines` that it had in all when it was adopted.
    """

    framing: Framing
    gzip: bool
    skip: int = Field(ge=0)
    lines: int


class LandedObject(_Frozen):
    """One raw object: what it must hold, to the byte.

    `runs` are pairs of first offset and record count: transaction markers take offsets too, so the
    records of an object need not have consecutive ones. An object that a sink connector wrote has `sink`: `sha256` is
    then that of the values that are meant, a line each, since the connector may write it again with more after them;
    `bytes` and `etag` are the whole object's when it was adopted.
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
        """Landing's own objects as version 1 has them."""
        fields: dict[str, Any] = handler(self)
        if self.sink is None:
            fields.pop("sink", None)
        return fields

    @model_validator(mode="after")
    def _counted(self) -> Self:
        if sum(count for _, count in self.runs) != self.records:
            raise ValueError(f"{self.key}: its runs hold another number of records than {self.records}")
        ends = [first + count - 1 for first, count in self.runs]
        rising = all(end < first for end, (first, _) in zip(ends, self.runs[1:], strict=False))
        if not rising or (self.runs[0][0], ends[-1]) != (self.first, self.last):
            raise ValueError(f"{self.key}: its runs do not rise from offset {self.first} to {self.last}")
        return self

    def offsets(self) -> Iterator[int]:
        """The offset of each record, in order."""
        for first, count in self.runs:
            yield from range(first, first + count)


class Manifest(_Frozen):
    """One committed batch of one topic.

    Version 3 has the chain's id and the partitions' last records; version 2 has objects that a sink connector wrote.
    """

    version: Literal[1, 2, 3] = 3
    chain: str = ""
    """The id of the chain that it belongs to (contract/objects/chain_id.py), empty for a pipeline's first one."""
    number: int
    attempt: str
    pipeline: str
    topic: str
    topic_id: str
    epoch: int = 0
    opens: str | None = None
    """Why an epoch begins here: such a manifest has no records, and only such a one may start elsewhere than where
    the one before it ended, at the offsets that the epoch's own object gives.
    """
    spans: tuple[Span, ...]
    objects: tuple[LandedObject, ...]
    dead_letters: int = 0
    watermark: Watermark | None = None
    committed_at: datetime

    @model_validator(mode="after")
    def _versioned(self) -> Self:
        if self.version < 3 and (self.chain or any(span.last is not None for span in self.spans)):
            raise ValueError(f"version {self.version} has no chain and no last records")
        return self

    @model_validator(mode="after")
    def _inside(self) -> Self:
        spans = {span.partition: span for span in self.spans}
        for item in self.objects:
            span = spans.get(item.partition)
            if span is None or not span.first <= item.first <= item.last < span.next:
                raise ValueError(f"{item.key} lies outside the manifest's offsets")
            if item.sink is not None and self.version == 1:
                raise ValueError(f"{item.key} is a sink connector's, which version 1 does not know")
        # Runs, not objects: those of a sink that partitions by fields lie among one another.
        every = sorted((item.partition, *run, item.key) for item in self.objects for run in item.runs)
        for (partition, first, count, _), (following, next_first, _, key) in pairwise(every):
            if partition == following and next_first < first + count:
                raise ValueError(f"{key} overlaps the object before it")
        if self.opens is not None and any(span.first != span.next for span in self.spans):
            raise ValueError("a manifest that opens an epoch covers no offsets")
        return self

    @property
    def records(self) -> int:
        """Records in the batch's objects."""
        return sum(item.records for item in self.objects)

    @property
    def size(self) -> int:
        """Size of the batch's objects in bytes."""
        return sum(item.bytes for item in self.objects)

    def next_offsets(self) -> Mapping[int, int]:
        """Where the next batch starts, by partition."""
        return {span.partition: span.next for span in self.spans}

    def last_records(self) -> Mapping[int, LastRecord]:
        """The newest committed record before the next batch, by partition; those of which it is known."""
        return {span.partition: span.last for span in self.spans if span.last is not None}

    def encode(self) -> bytes:
        """The manifest as it is stored."""
        return self.model_dump_json(indent=1).encode()

    @classmethod
    def decode(cls, body: bytes) -> Self:
        """A stored manifest; raises pydantic's ValidationError where it breaks its own rules."""
        return cls.model_validate_json(body)
