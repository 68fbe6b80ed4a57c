"""Formatted numbers are rounded half up and have a unit; exact numbers are unchanged."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import pytest

from cdc_lake.dashboard.formats import Format, exact, readable


@pytest.mark.parametrize(
    ("value", "fmt", "text"),
    [
        (Decimal("1265294.9395"), Format.MONEY, "$1,265,295"),
        (Decimal("0.125"), Format.MONEY_EXACT, "$0.13"),
        (Decimal("-1234.5"), Format.MONEY, "−$1,235"),  # noqa: RUF001
        (2152, Format.INTEGER, "2,152"),
        (46.0581, Format.DECIMAL, "46.1"),
        (0.0125, Format.PERCENT, "1.3%"),
        (True, Format.YES_NO, "yes"),
        (0, Format.YES_NO, "no"),
        ("ALFKI", Format.TEXT, "ALFKI"),
        (Decimal("-0.2"), Format.INTEGER, "0"),
        (None, Format.MONEY, "–"),  # noqa: RUF001
    ],
)
def test_readable_rounds_half_up_and_adds_the_unit(value: object, fmt: Format, text: str) -> None:
    assert readable(value, fmt, "$") == text


@pytest.mark.parametrize("value", ["12", True, float("nan")])
def test_numeric_formats_reject_other_values(value: object) -> None:
    with pytest.raises(ValueError, match=r"is not a number\. Cast it|nan cannot be shown\. Guard"):
        readable(value, Format.MONEY, "$")


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Decimal("110277.3050"), "110277.3050"),
        (Decimal("1E+3"), "1000"),
        (0.1 + 0.2, "0.30000000000000004"),
        (date(1998, 5, 6), "1998-05-06"),
        (False, "false"),
        (None, ""),
    ],
)
def test_exact_keeps_all_digits(value: object, text: str) -> None:
    assert exact(value) == text
