"""Encode and decode raw objects as Avro object container files: records of one schema, and that schema.

If landing applies no transforms, the values have the same bytes as in Kafka
(https://avro.apache.org/docs/1.12.0/specification/#object-container-files).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from io import BytesIO

import fastavro

from cdc_lake.contract.source.avro_records import AvroValue, ValueDecoder

EXTENSION = "avro"
SCHEMA_ID = "cdc_lake.schema_id"
"""The key of the file's metadata with the registry's id of the schema that the records have in Kafka."""


def join(records: Sequence[AvroValue]) -> bytes:
    """Return the body of an object with these records, which must have one schema. Equal records give equal bytes."""
    data = b"".join(record.value for record in records)
    # The specification's sync marker is random. This one is a hash, so that a retry writes the same bytes.
    marker = hashlib.md5(data, usedforsecurity=False).digest()
    body = BytesIO()
    metadata = {SCHEMA_ID: str(records[0].schema_id)}
    fastavro.writer(
        body, fastavro.parse_schema(json.loads(records[0].schema)), [], sync_marker=marker, metadata=metadata
    )
    for number in (len(records), len(data)):
        fastavro.schemaless_writer(body, "long", number)
    return body.getvalue() + data + marker


def values(body: bytes) -> Iterator[bytes]:
    """Return an iterator over an object's records as JSON, in order.

    Raises ValueError if the body is not a container file, UndecodableError if its schema is not supported.
    """
    reader = fastavro.reader(BytesIO(body))
    decoder = ValueDecoder.of(reader.metadata["avro.schema"], "schema")
    return map(decoder.text, reader)
