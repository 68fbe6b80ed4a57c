"""Avro records in the wire format of a registry, and a registry in memory."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from io import BytesIO

import fastavro

SCHEMA_ID = 7


@dataclass
class MemoryRegistry:
    """A registry whose schemas are given; `requested_ids` are those of all requests, in order."""

    schemas: dict[int, object]
    requested_ids: list[int] = field(default_factory=list)

    def schema(self, schema_id: int) -> str | None:
        """See Schemas."""
        self.requested_ids.append(schema_id)
        return json.dumps(self.schemas[schema_id]) if schema_id in self.schemas else None


def record(name: str, *fields: tuple[str, object]) -> dict[str, object]:
    """Return the schema of a record as Debezium's: a nullable field has the default NULL."""
    return {
        "type": "record",
        "name": name,
        "namespace": "shop.public",
        "connect.name": f"shop.public.{name}",
        "fields": [
            {"name": each, "type": kind, **({"default": None} if isinstance(kind, list) else {})}
            for each, kind in fields
        ],
    }


def framed(schema: dict[str, object], value: Mapping[str, object], schema_id: int = SCHEMA_ID) -> bytes:
    """Return a value in the wire format."""
    body = BytesIO()
    fastavro.schemaless_writer(body, fastavro.parse_schema(schema), value)
    return b"\x00" + schema_id.to_bytes(4, "big") + body.getvalue()
