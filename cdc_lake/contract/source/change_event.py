"""The identity of a change, computed from Debezium's flattened event in plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Record = Mapping[str, object]


def identity(record: Record, key: Sequence[str]) -> tuple[object, ...]:
    """Return the identity of a change: equal for all deliveries of the same change.

    A snapshot reads each key's row once; an interrupted snapshot restarts and reads it again with another LSN, so the
    LSN is not part of a snapshot row's identity. LSN, operation and key identify a streamed change.
    """
    values = tuple(record.get(name) for name in key)
    if record.get("__snapshot") not in {None, "false"} and record.get("__op", "r") == "r":
        return ("snapshot", *values)
    return (record.get("__lsn"), record.get("__op"), *values)
