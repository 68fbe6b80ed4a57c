"""How a value is written: for people (formatted, rounded) and for checking (exact).

Here: the formats a declaration may name, in Python and for a chart's axis.
Not here: which column has which format (spec.py).
"""

from __future__ import annotations

import json
from datetime import date, datetime
from decimal import ROUND_HALF_UP, Decimal
from enum import StrEnum

MISSING = "–"  # noqa: RUF001  (an en dash on purpose: what a reader sees where there is no value)


class Format(StrEnum):
    """What a column or a figure is written as."""

    TEXT = "text"
    INTEGER = "integer"
    DECIMAL = "decimal"
    MONEY = "money"
    MONEY_EXACT = "money_exact"
    PERCENT = "percent"
    YES_NO = "yes_no"

    @property
    def numeric(self) -> bool:
        """Whether values of this format have a position on an axis."""
        return self not in (Format.TEXT, Format.YES_NO)

    @property
    def places(self) -> int:
        """How many decimal places a number of this format is written with; of a percentage, those of the percents."""
        return _PLACES[self]


_PLACES = {
    Format.INTEGER: 0,
    Format.DECIMAL: 1,
    Format.MONEY: 0,
    Format.MONEY_EXACT: 2,
    Format.PERCENT: 1,
}
_AXIS = {
    Format.INTEGER: ",.0f",
    Format.DECIMAL: ",~f",
    Format.MONEY: ",~f",
    Format.MONEY_EXACT: ",.2f",
    Format.PERCENT: ".0%",
}


def readable(value: object, fmt: Format, currency: str) -> str:
    """`value` as people read it: grouped thousands, rounded half up, with its unit; a dash for None.

    Percentages are given as fractions: 0.253 is written 25.3%.
    Raises TypeError when a numeric format is asked for and the value is not a number.
    """
    if value is None:
        return MISSING
    if fmt is Format.YES_NO:
        return "yes" if value else "no"
    if fmt is Format.TEXT:
        return exact(value)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise TypeError(f"{value!r} is a {type(value).__name__}, and the format {fmt} is for numbers")
    number = value if isinstance(value, Decimal) else Decimal(repr(value))
    if fmt is Format.PERCENT:
        number *= 100
    rounded = number.quantize(Decimal(1).scaleb(-fmt.places), ROUND_HALF_UP)
    unit_before = currency if fmt in (Format.MONEY, Format.MONEY_EXACT) else ""
    unit_after = "%" if fmt is Format.PERCENT else ""
    return f"{'−' if rounded < 0 else ''}{unit_before}{abs(rounded):,f}{unit_after}"  # noqa: RUF001


def exact(value: object) -> str:
    """`value` as the query gave it, without rounding or grouping; empty for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, datetime | date):
        return value.isoformat()
    return str(value)


def axis_label(fmt: Format, currency: str) -> str:
    """A Vega expression that writes an axis tick in this format."""
    unit = json.dumps(currency) + " + " if fmt in (Format.MONEY, Format.MONEY_EXACT) else ""
    return f"{unit}format(datum.value, {json.dumps(_AXIS[fmt])})"
