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
    """What happens to a value that the lake's type cannot hold.

    dead_letter: the record becomes a dead letter; null: the value becomes NULL; max: infinity becomes 9999-12-31, and
    -infinity 0001-01-01.
    """

    infinity: Infinity = "dead_letter"
    """The rule for infinite dates and timestamps."""
    nan: NotANumber = "dead_letter"
    """The rule for NaN in numeric columns with a precision; all other numeric types keep NaN."""


STRICT = ValueRules()
