"""Raw objects: as JSON lines, each of which is one record's value, or as Avro (avro_container.py)."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator

from cdc_lake.contract.errors import ObjectDamagedError
from cdc_lake.contract.objects import avro_container
from cdc_lake.contract.objects.manifest import LandedObject, SinkPart
from cdc_lake.contract.objects.store import ObjectStore
from cdc_lake.contract.sinks import sink_lines

EXTENSION = "json"


def rejection_reason(value: bytes | None, largest: int) -> str | None:
    """Return why a record's value cannot be stored in an object, `largest` being the limit in bytes; None if it can."""
    if value is None:
        return "the record has no value"
    if not value:
        return "the record's value is empty"
    if len(value) > largest:
        return f"the record's value has {len(value):,} bytes, more than the {largest:,} of landing.record_bytes"
    return None


def join_lines(values: list[bytes]) -> bytes:
    """Return the body of an object of these records."""
    return b"\n".join(values) + b"\n"


def records(store: ObjectStore, item: LandedObject) -> Iterator[tuple[int, bytes]]:
    """Return the records of an object of a manifest, as (offset, JSON).

    Raises ObjectDamagedError if the object is missing, or differs from its manifest in any byte.
    """
    stored = store.get(item.key)
    advice = "Nothing was applied. Restore the object from a backup, or start over with `cdc-lake reset`."
    if stored is None:
        raise ObjectDamagedError(
            f"Cannot read raw object {item.key}: it is missing, though its manifest lists it. {advice}"
        )
    if item.sink is not None:
        return zip(item.offsets(), _sink_values(stored.body, item, item.sink), strict=True)
    body = stored.body
    if len(body) != item.bytes or hashlib.sha256(body).hexdigest() != item.sha256:
        raise ObjectDamagedError(
            f"Cannot read raw object {item.key}: it has {len(body)} bytes, which are not the {item.bytes} bytes that "
            f"its manifest describes. {advice}"
        )
    if item.key.endswith(f".{avro_container.EXTENSION}"):
        return zip(item.offsets(), avro_container.values(body), strict=True)
    lines = body.split(b"\n")
    if lines.pop() != b"" or len(lines) != item.records:
        raise ObjectDamagedError(
            f"Cannot read raw object {item.key}: it contains {len(lines)} records, its manifest counts {item.records}. "
            f"{advice}"
        )
    return zip(item.offsets(), lines, strict=True)


def _sink_values(body: bytes, item: LandedObject, part: SinkPart) -> list[bytes]:
    """Return a manifest's part of a sink connector's object, which the connector may have rewritten since."""
    found = sink_lines.lines(body, item.key, part.framing, part.gzip)[part.skip : part.skip + item.records]
    values = [value for _, value in found]
    if len(values) != item.records or hashlib.sha256(join_lines(values)).hexdigest() != item.sha256:
        raise ObjectDamagedError(
            f"Cannot read raw object {item.key}: it does not contain the {item.records} records after line {part.skip} "
            "that its manifest describes, because the sink connector rewrote it with other or fewer records. Nothing "
            f"was applied. Restore the version with ETag {item.etag} (the bucket keeps versions), or start over with "
            "`cdc-lake reset`."
        )
    return values
