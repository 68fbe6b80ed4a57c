"""Parse the objects of S3 sink connectors. Each line is a record's value as JSON, or an envelope that contains it.

    value            the record's value
    lenses_envelope  {"key":…,"value":…,"headers":…,"metadata":{"topic":…,"partition":…,"offset":…,"timestamp":…}}
    aiven_envelope   {"key":…,"value":…,"headers":…,"offset":…,"timestamp":…}, the configured members only

Lenses and Confluent end each line with a line feed; Aiven writes it between lines only. Values are returned unchanged,
byte for byte, also from an envelope. Sources: JsonFormatWriter.scala and SchemalessEnvelopeTransformer.scala in
https://github.com/lensesio/stream-reactor (`store.envelope`), ByteArrayRecordWriterProvider.java in
https://github.com/confluentinc/kafka-connect-storage-cloud, OutputWriter.java in
https://github.com/Aiven-Open/cloud-storage-connectors-for-apache-kafka (`format.output.fields`).
"""

from __future__ import annotations

import gzip
import zlib
from json import JSONDecodeError, JSONDecoder
from json.decoder import WHITESPACE  # type: ignore[attr-defined]
from typing import Literal

from cdc_lake.contract.errors import ObjectDamagedError, parse_fault

Framing = Literal["value", "lenses_envelope", "aiven_envelope"]
Line = tuple[int | None, bytes]
"""A record's offset (None if the line does not contain it) and its value."""

_DECODER = JSONDecoder()


def lines(body: bytes, key: str, framing: Framing, compressed: bool) -> list[Line]:
    """Return the records of an object, in order. Raises ObjectDamagedError if the object does not have this format."""
    try:
        text = gzip.decompress(body) if compressed else body
    except (OSError, EOFError, zlib.error) as error:
        raise _damaged(key, f"is not a complete gzip file ({error})") from error
    split = text.split(b"\n")
    if split[-1] == b"":
        split.pop()
    if framing == "value":
        return [(None, line) for line in split]
    return [_parse_envelope(line, key, number, framing) for number, line in enumerate(split, 1)]


def _parse_envelope(line: bytes, key: str, number: int, framing: Framing) -> Line:
    """Return an envelope's offset and the bytes of its value."""
    try:
        members = _members(line.decode())
        offset_member = (
            _members(members["metadata"][1])["offset"] if framing == "lenses_envelope" else members["offset"]
        )
        value = members["value"][1]
    except (UnicodeDecodeError, JSONDecodeError, KeyError, RecursionError) as error:
        raise _damaged(key, f"has no envelope with value and offset in line {number} ({parse_fault(error)})") from error
    offset = offset_member[0]
    if not isinstance(offset, int) or isinstance(offset, bool) or offset < 0:
        raise _damaged(key, f"has an invalid offset in line {number}: {offset_member[1]}")
    return offset, value.encode()


def _members(text: str) -> dict[str, tuple[object, str]]:
    """Return the members of a JSON object by name, each as decoded value and as text. Raises JSONDecodeError."""
    at = _expect(text, 0, "{")
    found: dict[str, tuple[object, str]] = {}
    if text[at : at + 1] == "}":
        return found
    while True:
        name, at = _DECODER.raw_decode(text, at)
        start = _expect(text, at, ":")
        value, end = _DECODER.raw_decode(text, start)
        found[str(name)] = (value, text[start:end])
        at = _skip_whitespace(text, end)
        if text[at : at + 1] == "}" and _skip_whitespace(text, at + 1) == len(text):
            return found
        at = _expect(text, at, ",")


def _expect(text: str, at: int, wanted: str) -> int:
    """Return the index after an expected character and the whitespace around it. Raises JSONDecodeError."""
    at = _skip_whitespace(text, at)
    if text[at : at + 1] != wanted:
        raise JSONDecodeError(f"Expecting {wanted!r}", text, at)
    return _skip_whitespace(text, at + 1)


def _skip_whitespace(text: str, at: int) -> int:
    return WHITESPACE.match(text, at).end()  # type: ignore[no-any-return]


def _damaged(key: str, what: str) -> ObjectDamagedError:
    return ObjectDamagedError(
        f"Cannot read object {key} of the sink connector: it {what}. Nothing was changed. Compare landing.sink in the "
        "pipeline's YAML with the connector's configuration, or restore the object's earlier version."
    )
