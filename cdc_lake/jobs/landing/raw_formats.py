"""Convert a topic's records to records of raw objects; the formats of topic and objects are independent."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

import pyarrow as pa

from cdc_lake.contract.objects import avro_container, parquet_file, raw_objects
from cdc_lake.contract.objects.parquet_file import Compression
from cdc_lake.contract.source.avro_records import AvroDecoder, AvroRecord, Schemas, UndecodableError

StreamFormat = Literal["json", "avro"]
LandingFormat = Literal["json", "avro", "parquet"]
TYPED, REJECTED = "row", "rejected"
"""The columns that jobs/landing/typed_rows.py adds to a batch: the row to store, and the reason for a rejection."""


@dataclass(frozen=True)
class Rejected:
    """A record that cannot be stored in a raw object, with the reason of its dead letter."""

    reason: str


@dataclass(frozen=True)
class RawRecord:
    """A record to store.

    `schema` is the id of an Avro record's schema, None for other formats; all records of an object have the same one.
    `size` is in bytes. `typed` is a batch of typed rows, and the index of this record's row in it.
    """

    schema: int | None
    size: int
    line: bytes = b""
    avro: AvroRecord | None = None
    typed: tuple[pa.RecordBatch, int] | None = None


@dataclass
class RecordFormat:
    """Converts records; `schemas` is the registry of a topic in Avro, None for one in JSON.

    `compression` is that of Parquet objects.
    """

    schemas: Schemas | None
    landing: LandingFormat
    record_bytes: int
    compression: Compression | None = None
    _decoder: AvroDecoder | None = field(init=False)

    def __post_init__(self) -> None:
        self._decoder = None if self.schemas is None else AvroDecoder(self.schemas)

    @property
    def extension(self) -> str:
        """The extension of the objects' names."""
        extensions = {"avro": avro_container.EXTENSION, "parquet": parquet_file.EXTENSION}
        return extensions.get(self.landing, raw_objects.EXTENSION)

    def records(self, batch: pa.RecordBatch) -> Iterator[RawRecord | Rejected]:
        """Yield the record to store for each row of a batch, from its value or from its typed row.

        Raises what the registry raises if a request fails.
        """
        if self.landing != "parquet":
            yield from map(self.convert, batch.column("value").to_pylist())
            return
        # A rejected record is not stored, so the columns of its row do not matter.
        rows = pa.RecordBatch.from_struct_array(batch.column(TYPED))
        reasons = batch.column(REJECTED).to_pylist()
        sizes = rows.column(rows.schema.get_field_index(parquet_file.RECORD)).to_pylist()
        for number, (reason, record) in enumerate(zip(reasons, sizes, strict=True)):
            yield Rejected(reason) if reason is not None else RawRecord(None, len(record), typed=(rows, number))

    def convert(self, value: bytes | None) -> RawRecord | Rejected:
        """Return the record to store, as JSON unless the objects are Avro.

        Raises what the registry raises if a request fails.
        """
        reason = raw_objects.rejection_reason(value, self.record_bytes)
        if value is None or reason is not None:
            return Rejected(reason or "")
        if self._decoder is None:
            return _line(value)
        try:
            record = self._decoder.decode(value)
        except UndecodableError as error:
            return Rejected(str(error))
        if self.landing == "avro":
            return RawRecord(record.schema_id, len(record.value), avro=record)
        return _line(record.json)

    def join(self, records: Sequence[RawRecord]) -> bytes:
        """Return the body of an object with these records."""
        if self.landing == "avro":
            return avro_container.join([record.avro for record in records if record.avro is not None])
        if self.landing == "parquet" and self.compression is not None:
            return parquet_file.join(list(_slices(records)), self.compression)
        return raw_objects.join_lines([record.line for record in records])


def _line(value: bytes) -> RawRecord | Rejected:
    if b"\n" in value:
        return Rejected("the record's value contains a line break, which no JSON converter writes")
    return RawRecord(None, len(value) + 1, line=value)


def _slices(records: Sequence[RawRecord]) -> Iterator[pa.RecordBatch]:
    """Yield the typed rows of records; consecutive rows of a batch are one slice."""
    places = [record.typed for record in records if record.typed is not None]
    for _, run in groupby(enumerate(places), lambda each: (id(each[1][0]), each[1][1] - each[0])):
        neighbours = [place for _, place in run]
        batch, first = neighbours[0]
        yield batch.slice(first, len(neighbours))
