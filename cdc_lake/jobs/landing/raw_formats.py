"""How a record of the topic becomes a record of a raw object: the formats of both, independent of each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from cdc_lake.contract.objects import avro_container, raw_objects
from cdc_lake.contract.source.avro_records import AvroDecoder, AvroRecord, Schemas, UndecodableError

StreamFormat = Literal["json", "avro"]
LandingFormat = Literal["json", "avro"]


@dataclass(frozen=True)
class Rejected:
    """A record that cannot be stored in a raw object, with the reason of its dead letter."""

    reason: str


@dataclass(frozen=True)
class RawRecord:
    """A record to store. Records of one object have the same `schema`, None for JSON; `size` is in bytes."""

    schema: int | None
    size: int
    line: bytes = b""
    avro: AvroRecord | None = None


@dataclass
class RecordFormat:
    """Converts records; `schemas` is the registry of a topic in Avro, None for one in JSON."""

    schemas: Schemas | None
    landing: LandingFormat
    record_bytes: int
    _decoder: AvroDecoder | None = field(init=False)

    def __post_init__(self) -> None:
        self._decoder = None if self.schemas is None else AvroDecoder(self.schemas)

    @property
    def extension(self) -> str:
        """The extension of the objects' names."""
        return avro_container.EXTENSION if self.landing == "avro" else raw_objects.EXTENSION

    def convert(self, value: bytes | None) -> RawRecord | Rejected:
        """Return the record to store. Raises what the registry raises if it cannot be asked."""
        reason = raw_objects.rejection_reason(value, self.record_bytes)
        if value is None or reason is not None:
            return Rejected(reason or "")
        if self._decoder is None:
            return _line(value)
        try:
            record = self._decoder.decode(value)
        except UndecodableError as error:
            return Rejected(str(error))
        if self.landing == "json":
            return _line(record.json)
        return RawRecord(record.schema_id, len(record.value), avro=record)

    def join(self, records: Sequence[RawRecord]) -> bytes:
        """Return the body of an object of these records."""
        if self.landing == "avro":
            return avro_container.join([record.avro for record in records if record.avro is not None])
        return raw_objects.join_lines([record.line for record in records])


def _line(value: bytes) -> RawRecord | Rejected:
    if b"\n" in value:
        return Rejected("the record's value contains a line break, which no JSON converter writes")
    return RawRecord(None, len(value) + 1, line=value)
