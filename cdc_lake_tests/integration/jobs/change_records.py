"""The columns of a small table, and its records as Debezium's flattening transform writes them."""

from __future__ import annotations

from typing import Any

from cdc_lake.contract.schema.captured_schema import Column

COLUMNS = (
    Column(name="id", type="integer", nullable=False),
    Column(name="note", type="text"),
    Column(name="qty", type="bigint"),
)
KEY = ("id",)


def event(key: int | None, op: str, lsn: int, snapshot: str = "false", **values: object) -> dict[str, Any]:
    """Return a record as Debezium's flattening transform writes it."""
    return {
        "id": key,
        "note": None,
        "qty": 1,
        **values,
        "__op": op,
        "__db": "devdb",
        "__schema": "public",
        "__table": "orders",
        "__lsn": lsn,
        "__txId": lsn // 3,
        "__snapshot": snapshot,
        # One of four values: ordering by this field is wrong.
        "__source_ts_ms": 1_700_000_000_000 + lsn % 4,
        "__deleted": "true" if op == "d" else "false",
    }
