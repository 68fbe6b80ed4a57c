"""The rules in a table's YAML for values that the lake's types cannot hold.

`jobs/apply/special_values.py` applies them to events, `jobs/verify/source_values.py` to the source's rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Infinity = Literal["dead_letter", "null", "max"]
NotANumber = Literal["dead_letter", "null"]

PLACEHOLDER = "__debezium_unavailable_value"
"""Debezium's placeholder for an unchanged TOASTed value, which PostgreSQL omits from the WAL: the connector's
`unavailable.value.placeholder`."""


@dataclass(frozen=True)
class ValueRules:
    """What happens to a value that its column cannot hold: the record becomes a dead letter, the value becomes NULL, or
    the value becomes the end of the calendar (9999-12-31, 0001-01-01).
    """

    infinity: Infinity = "dead_letter"
    """For dates and timestamps."""
    nan: NotANumber = "dead_letter"
    """For numeric columns with a precision; all other numeric types keep NaN."""


STRICT = ValueRules()
