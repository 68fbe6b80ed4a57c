"""Convert values to text: formatted and rounded for people, or exact as the query returned them."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, localcontext
from enum import StrEnum

MISSING = "–"  # noqa: RUF001 - an en dash, shown instead of a missing value


class Format(StrEnum):
    """The format of a column or of a value in a sentence."""

    TEXT = "text"
    INTEGER = "integer"
    DECIMAL = "decimal"
    MONEY = "money"
    MONEY_EXACT = "money_exact"
    PERCENT = "percent"
    YES_NO = "yes_no"

    @property
    def numeric(self) -> bool:
        """Whether values of this format are numbers."""
        return self in _D3

    @property
    def d3(self) -> str:
        """The d3-format of a numeric format, for Vega-Lite. Except for `$` it is also a Python format specification."""
        return _D3[self]


_D3 = {
    Format.INTEGER: ",.0f",
    Format.DECIMAL: ",.1f",
    Format.MONEY: "$,.0f",
    Format.MONEY_EXACT: "$,.2f",
    Format.PERCENT: ".1%",
}


def readable(value: object, fmt: Format, currency: str) -> str:
    """Return the value with grouped thousands, rounded half up and with its unit; a dash for None.

    Percentages are fractions: 0.253 becomes 25.3%. Raises ValueError if the format needs a number and gets none.
    """
    if value is None:
        return MISSING
    if fmt is Format.YES_NO:
        return "yes" if value else "no"
    if fmt is Format.TEXT:
        return exact(value)
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError(f"{value!r} is not a number. Cast it in the SQL, or declare another format than {fmt}.")  # noqa: TRY004
    number = value if isinstance(value, Decimal) else Decimal(repr(value))
    if not number.is_finite():
        raise ValueError(f"{value} cannot be shown. Guard the division in the SQL with nullif(…, 0).")
    with localcontext(rounding=ROUND_HALF_UP):
        digits = format(abs(number), fmt.d3.removeprefix("$"))
    sign = "−" if number < 0 and digits.strip("0.,%") else ""  # noqa: RUF001 - d3 writes this minus too
    return f"{sign}{currency if '$' in fmt.d3 else ''}{digits}"


def exact(value: object) -> str:
    """Return the value without rounding or grouping; an empty text for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Decimal):
        return format(value, "f")
    return str(value)
