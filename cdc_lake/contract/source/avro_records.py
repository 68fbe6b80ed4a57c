"""Decode Avro records of a topic to the JSON that Debezium's JSON converter writes for the same changes.

A record is a zero byte, the id of its schema in the registry (4 bytes, big-endian), and a value in Avro's binary
encoding (https://docs.confluent.io/platform/current/schema-registry/fundamentals/serdes-develop/index.html#wire-format).
"""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from io import BytesIO
from typing import Any, Protocol

import fastavro
import numpy as np

from cdc_lake.contract.plurals import counted

MAGIC = b"\x00"
"""The first byte of an Avro record. No JSON text begins with this byte."""
_HEADER_BYTES = 5

Convert = Callable[[Any], Any]
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)


class Schemas(Protocol):
    """The schemas of a registry by id."""

    def schema(self, schema_id: int) -> str | None:
        """Return the schema's JSON text; None if the registry has no schema with this id."""


class UndecodableError(Exception):
    """A record cannot be decoded with its schema; the message is stored as the reason of its dead letter."""


class UnknownSchemaError(UndecodableError):
    """The registry has no schema with the id in the record: the record was written with another registry."""


@dataclass(frozen=True)
class AvroValue:
    """A record's value in Avro's binary encoding, the JSON text of its schema, and the id of its schema in Kafka."""

    schema_id: int
    schema: str
    value: bytes


@dataclass(frozen=True)
class AvroRecord(AvroValue):
    """A decoded record, with its value as JSON too."""

    json: bytes


@dataclass
class AvroDecoder:
    """Decodes records with the schemas of a registry."""

    schemas: Schemas
    _known: dict[int, tuple[str, ValueDecoder]] = field(default_factory=dict)

    def decode(self, record: bytes) -> AvroRecord:
        """Decode a record. Raises UndecodableError, and the errors of Schemas.schema()."""
        if len(record) <= _HEADER_BYTES or not record.startswith(MAGIC):
            raise UndecodableError(
                "the record is not Avro in a registry's wire format: a zero byte, a schema id of four bytes, a value"
            )
        schema_id = int.from_bytes(record[1:_HEADER_BYTES], "big")
        if schema_id not in self._known:
            text = self.schemas.schema(schema_id)
            if text is None:
                raise UnknownSchemaError(f"the registry has no schema {schema_id}, which the record names")
            self._known[schema_id] = text, ValueDecoder.of(text, f"schema {schema_id}")
        text, decoder = self._known[schema_id]
        value = record[_HEADER_BYTES:]
        return AvroRecord(schema_id, text, value, decoder.json(value, f"schema {schema_id}"))


@dataclass(frozen=True)
class ValueDecoder:
    """Decodes values of one schema."""

    schema: Any
    convert: Convert | None

    @classmethod
    def of(cls, text: str, name: str) -> ValueDecoder:
        """Return the decoder of a schema from its JSON text. Raises UndecodableError if it is not supported."""
        try:
            schema = fastavro.parse_schema(json.loads(text))
            return cls(schema, _converter(schema, {}))
        except (ValueError, KeyError, TypeError, fastavro.schema.SchemaParseException) as error:
            raise UndecodableError(f"the record's {name} is not supported: {error}") from error

    def json(self, value: bytes, name: str) -> bytes:
        """Return a value in Avro's encoding as JSON. Raises UndecodableError."""
        source = BytesIO(value)
        try:
            decoded = fastavro.schemaless_reader(source, self.schema, None)
        except (EOFError, ValueError, IndexError, KeyError, TypeError, OverflowError, MemoryError) as error:
            raise UndecodableError(
                f"the record's bytes are not a value of {name}: {str(error) or 'they end early'}"
            ) from None
        if source.tell() != len(value):
            more = counted(len(value) - source.tell(), "more byte")
            raise UndecodableError(f"after a value of {name}, the record has {more}")
        return self.text(decoded)

    def text(self, decoded: object) -> bytes:
        """Return a decoded value as JSON."""
        shown = decoded if self.convert is None else self.convert(decoded)
        return _JSON.encode(shown).encode()


def _converter(schema: Any, named: dict[str, Convert | None]) -> Convert | None:  # noqa: ANN401 - a schema's JSON
    """Return the function that converts decoded values to JSON values; None if they need no conversion."""
    if isinstance(schema, str):
        return named[schema] if schema in named else _PRIMITIVE[schema]
    if isinstance(schema, list):
        others = [each for each in schema if each != "null"]
        if len(others) > 1:
            raise ValueError("it has a union of several types, which Debezium's converters do not write")
        convert = _converter(others[0], named) if others else None
        return None if convert is None else lambda value: None if value is None else convert(value)
    if "logicalType" in schema:
        raise ValueError(f"it has the logical type {schema['logicalType']}: use Debezium's own types (adaptive)")
    match schema["type"]:
        case "record":
            found = _record(schema, named)
        case "array":
            items = _converter(schema["items"], named)
            found = None if items is None else lambda value: [items(each) for each in value]
        case "map":
            values = _converter(schema["values"], named)
            found = None if values is None else lambda value: {name: values(each) for name, each in value.items()}
        case "fixed":
            found = _base64
        case "enum":
            found = None
        case other:
            return _converter(other, named)
    if "name" in schema:
        named[schema["name"]] = found
    return found


def _record(schema: Any, named: dict[str, Convert | None]) -> Convert | None:  # noqa: ANN401 - as above
    fields = [(one["name"], _converter(one["type"], named)) for one in schema["fields"]]
    converted = [(name, convert) for name, convert in fields if convert is not None]
    if not converted:
        return None

    def convert_fields(value: dict[str, Any]) -> dict[str, Any]:
        for name, convert in converted:
            value[name] = convert(value[name])
        return value

    return convert_fields


def _base64(value: bytes) -> str:
    return base64.b64encode(value).decode()


def _double(value: float) -> float | str:
    """Return a finite number unchanged, and NaN or an infinity as the text that Java writes."""
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _float(value: float) -> float | str:
    """Return the shortest decimal number with the same 32-bit float: 0.1, not 0.10000000149011612."""
    return float(str(np.float32(value))) if math.isfinite(value) else _double(value)


_PRIMITIVE: dict[str, Convert | None] = {
    **dict.fromkeys(("null", "boolean", "int", "long", "string")),
    "bytes": _base64,
    "float": _float,
    "double": _double,
}
