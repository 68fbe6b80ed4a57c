"""What a record says it is: Debezium's flattened event, read in plain Python."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

Record = Mapping[str, object]


def identity(record: Record, key: Sequence[str]) -> tuple[object, ...]:
    """What makes a change the one it is, however often it was delivered.

    A snapshot tells each key's row once; one that was interrupted starts again and tells it again, with another
    LSN. A streamed change is told by its LSN and key.
    """
    values = tuple(record.get(name) for name in key)
    if record.get("__snapshot") not in {None, "false"}:
        return ("snapshot", *values)
    return (record.get("__lsn"), record.get("__op"), *values)
