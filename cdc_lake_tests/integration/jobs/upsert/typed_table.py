"""A table with a column of each kind, and its records as Debezium sends them."""

from __future__ import annotations

from typing import Any

from cdc_lake.contract.schema.captured_schema import Column

COLUMNS = (
    Column(name="id", type="integer", nullable=False),
    Column(name="day", type="date"),
    Column(name="at", type="timestamp without time zone"),
    Column(name="at_ms", type="timestamp(3) without time zone"),
    Column(name="at_zone", type="timestamp with time zone"),
    Column(name="clock", type="time without time zone"),
    Column(name="clock_ms", type="time(3) without time zone"),
    Column(name="amount", type="numeric(20,10)"),
    Column(name="whole", type="numeric(38,0)"),
    Column(name="unbounded", type="numeric"),
    Column(name="raw", type="bytea"),
    Column(name="yes", type="boolean"),
    Column(name="doc", type="jsonb"),
    Column(name="small", type="smallint"),
    Column(name="big", type="bigint"),
    Column(name="single", type="real"),
    Column(name="double", type="double precision"),
    Column(name="uuid", type="uuid"),
    Column(name="MixedCase", type="character varying(20)"),
)
KEY = ("id",)

GOOD: dict[str, Any] = {
    "id": 1,
    "day": 19_782,
    "at": 1_709_251_199_123_456,
    "at_ms": 1_709_251_199_123,
    "at_zone": "2024-02-29T23:59:59.123456Z",
    "clock": 86_399_999_999,
    "clock_ms": 86_399_999,
    "amount": "1234567890.0123456789",
    "whole": "12345678901234567890123456789012345678",
    "unbounded": "3.14159265358979323846264338327950288419716939937510582",
    "raw": "AP+AYWI=",
    "yes": True,
    "doc": '{"a": [1, {"b": null}], "ß": "🦆"}',
    "small": -32_768,
    "big": 9_223_372_036_854_775_807,
    "single": 0.1,
    "double": 1.7976931348623157e308,
    "uuid": "6f1c1f1e-0000-4000-8000-000000000001",
    "MixedCase": "ß→🦆 \\ \"'",
    "__op": "c",
    "__db": "devdb",
    "__schema": "public",
    "__table": "orders",
    "__lsn": 31_268_664,
    "__txId": 770,
    "__snapshot": "false",
    "__source_ts_ms": 1_709_251_199_000,
    "__deleted": "false",
}


def record(key: int | None, **changes: object) -> dict[str, Any]:
    """Return the good record with another key and other values, without the fields that are set to `...`."""
    fields = {**GOOD, "id": key, **changes}
    return {name: value for name, value in fields.items() if value is not ...}
