"""When two totals of a dataset count as equal."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cdc_lake.pipeline.assets.dataset_totals import equal_totals


@pytest.mark.parametrize(
    ("kind", "one", "other", "equal"),
    [
        ("bigint", "3", "3", True),
        ("bigint", "3", "4", False),
        ("decimal(38,2)", "0.30", "0.3", True),
        ("decimal(38,2)", "0.30", "0.31", False),
        ("double", "0.30000000000000004", "0.3", True),
        ("double", "1000000.1", "1000000.2", False),
        ("double", "NaN", "NaN", True),
        ("double", "NaN", "1", False),
        ("real", "16777216", "16777217", True),
        ("real", "100", "101", False),
    ],
)
def test_floats_are_equal_up_to_the_order_of_addition(kind: str, one: str, other: str, equal: bool) -> None:
    assert equal_totals(kind, Decimal(one), Decimal(other)) is equal
