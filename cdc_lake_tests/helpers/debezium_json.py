"""Debezium's JSON encoding of PostgreSQL's values, as observed in integration/chain/formats/test_types.py."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

_DAY = date(1970, 1, 1)
_START = datetime(1970, 1, 1)


def _micros(moment: datetime) -> int:
    return (moment - _START) // timedelta(microseconds=1)


def _clock(at: time) -> int:
    return ((at.hour * 60 + at.minute) * 60 + at.second) * 1_000_000 + at.microsecond


def _float(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _bits(text: str) -> str:
    number = int(text, 2)
    return base64.b64encode(number.to_bytes((number.bit_length() + 7) // 8, "little")).decode()


ENCODERS: dict[str, Callable[[Any], Any]] = {
    "date": lambda value: (value - _DAY).days,
    "timestamp without time zone": _micros,
    "timestamp(3) without time zone": lambda value: _micros(value) // 1000,
    "timestamp with time zone": lambda value: value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ").rjust(27, "0"),
    "time without time zone": _clock,
    "time(3) without time zone": lambda value: _clock(value) // 1000,
    "bytea": lambda value: base64.b64encode(value).decode(),
    "numeric": lambda value: f"{value:f}",
    "real": _float,
    "double precision": _float,
    "bit(10)": _bits,
}


def field(postgres: str, value: Any) -> Any:  # noqa: ANN401 - any value of any type
    """Return a record's field for a column of this type."""
    if value is None:
        return None
    if isinstance(value, Decimal):
        return ENCODERS["numeric"](value)
    return ENCODERS.get(postgres, lambda same: same)(value)
