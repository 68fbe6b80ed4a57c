"""Convert a topic's records to records of raw objects; the formats of topic and objects are independent.

contract/objects/raw_objects.py reads the objects again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Literal

import pyarrow as pa

from cdc_lake.contract.objects import avro_container, hive_partitions, parquet_file, raw_objects
from cdc_lake.contract.objects.parquet_file import Compression
from cdc_lake.contract.schema import record_text
from cdc_lake.contract.schema.transforms import TableTransforms
from cdc_lake.contract.source.avro_records import AvroDecoder, AvroValue, Schemas, UndecodableError
from cdc_lake.contract.source.avro_transforms import AvroTransform

StreamFormat = Literal["json", "avro"]
LandingFormat = Literal["json", "avro", "parquet"]
EXTENSIONS: Mapping[LandingFormat, str] = {
    "json": raw_objects.EXTENSION,
    "avro": avro_container.EXTENSION,
    "parquet": parquet_file.EXTENSION,
}
TYPED, REJECTED, PARTITION_VALUES = "row", "rejected", "partition_values"
"""The columns that jobs/landing/typed_rows.py adds to a batch: the row to store in a Parquet object, the reason for a
rejection, and the values of the partition columns."""
Folders = tuple[str, ...]
"""The folders of a record's object, one for each partition column."""


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
    avro: AvroValue | None = None
    typed: tuple[pa.RecordBatch, int] | None = None


@dataclass
class RecordFormat:
    """Converts records; `schemas` is the registry of a topic in Avro, None for one in JSON.

    `compression` is that of Parquet objects, `partition_by` are the partition columns, and `transforms` are applied to
    records that are stored as JSON or Avro, or decoded.
    """

    schemas: Schemas | None
    landing: LandingFormat
    record_bytes: int
    compression: Compression | None = None
    partition_by: Sequence[str] = ()
    transforms: TableTransforms | None = None
    _decoder: AvroDecoder | None = field(init=False)
    _changed: dict[int, AvroTransform] = field(default_factory=dict, init=False)

    def __post_init__(self) -> None:
        self._decoder = None if self.schemas is None else AvroDecoder(self.schemas)

    @property
    def extension(self) -> str:
        """The extension of the objects' names."""
        return EXTENSIONS[self.landing]

    def records(self, batch: pa.RecordBatch) -> Iterator[tuple[RawRecord | Rejected, Folders]]:
        """Yield the record to store for each row of a batch, from its value or from its typed row, and its folders.

        Raises what the registry raises if a request fails.
        """
        if REJECTED not in batch.schema.names:  # the records are not decoded
            yield from ((record, ()) for record in map(self.convert, batch.column("value").to_pylist()))
            return
        reasons = batch.column(REJECTED).to_pylist()
        folders: list[Folders] = [()] * len(reasons)
        if self.partition_by:
            partition_values = batch.column(PARTITION_VALUES).to_pylist()
            reasons = [
                reason or hive_partitions.fault(self.partition_by, values)
                for reason, values in zip(reasons, partition_values, strict=True)
            ]
            folders = [tuple(map(hive_partitions.folder, self.partition_by, values)) for values in partition_values]
        found: Iterable[RawRecord | Rejected] = (
            _typed_rows(batch, folders)
            if self.landing == "parquet"
            else map(self.convert, batch.column("value").to_pylist())
        )
        for record, reason, record_folders in zip(found, reasons, folders, strict=True):
            yield (record if reason is None else Rejected(reason)), record_folders

    def convert(self, value: bytes | None) -> RawRecord | Rejected:
        """Return the record to store, as JSON unless the objects are Avro.

        Raises what the registry raises if a request fails.
        """
        reason = raw_objects.rejection_reason(value, self.record_bytes)
        if value is None or reason is not None:
            return Rejected(reason or "")
        if self._decoder is None:
            return self._line(value)
        try:
            record = self._decoder.decode(value)
            return self._avro(record) if self.landing == "avro" else self._line(record.json)
        except UndecodableError as error:
            return Rejected(str(error))

    def _avro(self, record: AvroValue) -> RawRecord:
        if self.transforms is not None:
            if record.schema_id not in self._changed:
                name = f"schema {record.schema_id}"
                self._changed[record.schema_id] = AvroTransform.of(record.schema, self.transforms, name)
            record = self._changed[record.schema_id].apply(record)
        return RawRecord(record.schema_id, len(record.value), avro=record)

    def _line(self, value: bytes) -> RawRecord | Rejected:
        if b"\n" in value:
            return Rejected("the record's value contains a line break, which no JSON converter writes")
        if self.transforms is not None:
            try:
                value = record_text.landed(value.decode(), self.transforms).encode()
            except (ValueError, RecursionError):
                return Rejected(
                    "the record is not a JSON object, or nested too deeply, so that landing cannot apply its transforms"
                )
        return RawRecord(None, len(value) + 1, line=value)

    def join(self, records: Sequence[RawRecord]) -> bytes:
        """Return the body of an object with these records."""
        if self.landing == "avro":
            return avro_container.join([record.avro for record in records if record.avro is not None])
        if self.landing == "parquet" and self.compression is not None:
            return parquet_file.join(list(_slices(records)), self.compression)
        return raw_objects.join_lines([record.line for record in records])


def _typed_rows(batch: pa.RecordBatch, folders: Sequence[Folders]) -> Iterator[RawRecord]:
    """Yield the typed row of each record.

    The rows of each folder are copied to one batch, because a slice keeps the whole batch in memory, and the rows of
    a rare value stay in memory until the last batch is read.
    """
    rows = pa.RecordBatch.from_struct_array(batch.column(TYPED))
    rows_by_folders: dict[Folders, list[int]] = {}
    positions = []
    for row, row_folders in enumerate(folders):
        same = rows_by_folders.setdefault(row_folders, [])
        positions.append(len(same))
        same.append(row)
    copies = {
        each: rows if len(rows_by_folders) == 1 else rows.take(pa.array(same)) for each, same in rows_by_folders.items()
    }
    texts = rows.column(rows.schema.get_field_index(parquet_file.RECORD)).to_pylist()
    for row_folders, position, record in zip(folders, positions, texts, strict=True):
        # A rejected record has no text; it is not stored.
        yield RawRecord(None, len(record or ""), typed=(copies[row_folders], position))


def _slices(records: Sequence[RawRecord]) -> Iterator[pa.RecordBatch]:
    """Yield the typed rows of records; consecutive rows of a batch are one slice."""
    rows = [record.typed for record in records if record.typed is not None]
    for _, run in groupby(enumerate(rows), lambda each: (id(each[1][0]), each[1][1] - each[0])):
        consecutive = [row for _, row in run]
        batch, first = consecutive[0]
        yield batch.slice(first, len(consecutive))
