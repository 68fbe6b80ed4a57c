"""Values that PostgreSQL has and the lake's types have not, and what a table's YAML may say about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Infinity = Literal["dead_letter", "null", "max"]
NotANumber = Literal["dead_letter", "null"]

PLACEHOLDER = "__debezium_unavailable_value"
"""What stands for a TOASTed value that did not change and that PostgreSQL therefore left out of the WAL's record: the
connector's `unavailable.value.placeholder`."""


@dataclass(frozen=True)
class ValueRules:
    """What becomes of a value that its column can't hold: the record is a dead letter, the value is NULL, or the end
    of the calendar (9999-12-31, 0001-01-01).
    """

    infinity: Infinity = "dead_letter"
    """Of a date or timestamp."""
    nan: NotANumber = "dead_letter"
    """Of a numeric column with a precision; where there is none, and in real and double precision, NaN is kept."""


STRICT = ValueRules()
