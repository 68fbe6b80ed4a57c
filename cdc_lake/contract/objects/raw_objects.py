"""Read raw objects, and check them against their manifest.

Raw objects are JSON lines with one record's value in each line, Avro (avro_container.py) or Parquet (parquet_file.py).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from cdc_lake.contract.errors import ObjectDamagedError, reset_advice
from cdc_lake.contract.objects import avro_container, parquet_file
from cdc_lake.contract.objects.manifest import LandedObject, SinkPart
from cdc_lake.contract.objects.object_names import ObjectName
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.plurals import counted
from cdc_lake.contract.sinks import sink_lines

EXTENSION = "json"


def rejection_reason(value: bytes | None, largest: int) -> str | None:
    """Return why a record's value cannot be stored in an object, None if it can; `largest` is the limit in bytes."""
    if value is None:
        return "the record has no value"
    if not value:
        return "the record's value is empty"
    if len(value) > largest:
        return f"the record's value has {len(value):,} bytes, more than the {largest:,} of landing.record_bytes"
    return None


def join_lines(values: list[bytes]) -> bytes:
    """Return the body of an object with these values as JSON lines."""
    return b"\n".join(values) + b"\n"


def records(store: ObjectStore, item: LandedObject) -> Iterator[tuple[int, bytes]]:
    """Return the records of an object that a manifest lists, as (offset, JSON).

    Raises ObjectDamagedError if the object is missing, or differs from its manifest in any byte.
    """
    found = body(store, item)
    if item.sink is not None:
        return zip(item.offsets(), _sink_values(found, item, item.sink), strict=True)
    if item.key.endswith(f".{avro_container.EXTENSION}"):
        return zip(item.offsets(), avro_container.values(found), strict=True)
    if item.key.endswith(f".{parquet_file.EXTENSION}"):
        return zip(item.offsets(), parquet_file.values(found), strict=True)
    lines = found.split(b"\n")
    if lines.pop() != b"" or len(lines) != item.records:
        raise _damaged(item, f"it contains {counted(len(lines), 'record')}, but its manifest lists {item.records}")
    return zip(item.offsets(), lines, strict=True)


def body(store: ObjectStore, item: LandedObject) -> bytes:
    """Return the body of an object that a manifest lists.

    Raises ObjectDamagedError if the object is missing, or its size or SHA-256 differs from its manifest. The body of a
    sink connector's object is not compared, because the connector may have rewritten it.
    """
    stored = store.get(item.key)
    if stored is None:
        raise _damaged(item, "it is missing, though its manifest lists it")
    if item.sink is not None:
        return stored.body
    if len(stored.body) != item.bytes:
        raise _damaged(item, f"it has {len(stored.body)} bytes, but its manifest lists {item.bytes}")
    if hashlib.sha256(stored.body).hexdigest() != item.sha256:
        raise _damaged(item, "its SHA-256 differs from the one in its manifest")
    return stored.body


def _sink_values(body: bytes, item: LandedObject, part: SinkPart) -> list[bytes]:
    """Return the values of the part of a sink connector's object that a manifest covers.

    Raises ObjectDamagedError if their number or SHA-256 differs: the connector may have rewritten the object.
    """
    found = sink_lines.lines(body, item.key, part.framing, part.gzip)[part.skip : part.skip + item.records]
    values = [value for _, value in found]
    if len(values) != item.records or hashlib.sha256(join_lines(values)).hexdigest() != item.sha256:
        raise _damaged(
            item,
            f"its records after line {part.skip} are not those that its manifest lists. The sink connector may have "
            "rewritten the object",
            f"the version with ETag {item.etag}, if the bucket keeps versions",
        )
    return values


def _damaged(item: LandedObject, reason: str, restored: str = "the object from a backup") -> ObjectDamagedError:
    name = ObjectName.parse(item.key)
    pipeline = "PIPELINE" if name is None else name.pipeline  # a sink connector's key does not contain it
    return ObjectDamagedError(
        f"Cannot read raw object {item.key}: {reason}. Nothing was applied. Restore {restored}, or "
        f"{reset_advice(pipeline)}."
    )
