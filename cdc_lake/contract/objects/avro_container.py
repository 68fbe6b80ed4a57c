"""Raw objects as Avro object container files: records of one schema, with that schema.

The values keep the bytes that they have in Kafka (https://avro.apache.org/docs/1.12.0/specification/#object-container-files).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from io import BytesIO

import fastavro

from cdc_lake.contract.source.avro_records import AvroRecord, ValueDecoder

EXTENSION = "avro"
SCHEMA_ID = "cdc_lake.schema_id"
"""The entry of a file's metadata with the schema's id in the registry."""


def join(records: Sequence[AvroRecord]) -> bytes:
    """Return the body of an object of these records, which have the same schema; equal for equal records."""
    data = b"".join(record.value for record in records)
    marker = hashlib.md5(data, usedforsecurity=False).digest()  # random by the specification; only to resynchronise
    body = BytesIO()
    metadata = {SCHEMA_ID: str(records[0].schema_id)}
    fastavro.writer(
        body, fastavro.parse_schema(json.loads(records[0].schema)), [], sync_marker=marker, metadata=metadata
    )
    for number in (len(records), len(data)):
        fastavro.schemaless_writer(body, "long", number)
    return body.getvalue() + data + marker


def values(body: bytes) -> Iterator[bytes]:
    """Yield the records of an object as JSON, in order. Raises ValueError if the body is not a container file."""
    reader = fastavro.reader(BytesIO(body))
    decoder = ValueDecoder.of(reader.metadata["avro.schema"], "the schema of the object")
    return map(decoder.text, reader)
