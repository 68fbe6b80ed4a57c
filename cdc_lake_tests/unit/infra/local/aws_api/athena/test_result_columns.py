"""Conversion of Trino's types and values to Athena's."""

from __future__ import annotations

from typing import Any

import pytest

from infra.local.aws_api.athena.result_columns import Column, Value, float_text


def _signature(raw: str, *arguments: tuple[str, object]) -> dict[str, Any]:
    return {"rawType": raw, "arguments": [{"kind": kind, "value": value} for kind, value in arguments]}


VARCHAR = _signature("varchar", ("LONG", 2147483647))
INTEGER = _signature("integer")
ROW = _signature(
    "row",
    ("NAMED_TYPE", {"fieldName": {"name": "a"}, "typeSignature": INTEGER}),
    ("NAMED_TYPE", {"fieldName": None, "typeSignature": VARCHAR}),
)


@pytest.mark.parametrize(
    ("signature", "expected"),
    [
        (VARCHAR, ("varchar", 2147483647, 0)),
        (_signature("varchar", ("LONG", 5)), ("varchar", 5, 0)),
        (_signature("decimal", ("LONG", 6), ("LONG", 2)), ("decimal", 6, 2)),
        (INTEGER, ("integer", 10, 0)),
        (_signature("real"), ("float", 17, 0)),
        (_signature("timestamp", ("LONG", 6)), ("timestamp", 3, 0)),
        (_signature("array", ("TYPE", INTEGER)), ("array", 0, 0)),
    ],
)
def test_column_info_names_type_precision_and_scale(signature: dict[str, Any], expected: tuple[str, int, int]) -> None:
    info = Column("c", signature).info()

    assert (info["Type"], info["Precision"], info["Scale"]) == expected


@pytest.mark.parametrize(
    ("value", "signature", "expected"),
    [
        (None, INTEGER, None),
        ("", VARCHAR, ""),
        (True, _signature("boolean"), "true"),
        ("10.50", _signature("decimal", ("LONG", 6), ("LONG", 2)), "10.50"),
        ("1998-05-06", _signature("date"), "1998-05-06"),
        ("aGVs", _signature("varbinary"), "68 65 6c"),
        ([1, None], _signature("array", ("TYPE", INTEGER)), "[1, null]"),
        (
            {"k": [1.5]},
            _signature("map", ("TYPE", VARCHAR), ("TYPE", _signature("array", ("TYPE", _signature("double"))))),
            "{k=[1.5]}",
        ),
        ([1, "x"], ROW, "{a=1, field1=x}"),
    ],
)
def test_a_value_becomes_the_text_of_a_cell(value: Value, signature: dict[str, Any], expected: str | None) -> None:
    assert Column("c", signature).text(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (0.0, "0.0"),
        (1.0, "1.0"),
        (-1.5, "-1.5"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (1e7, "1.0E7"),
        (12345678.9, "1.23456789E7"),
        (-1.5e300, "-1.5E300"),
        (float("nan"), "NaN"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_a_double_is_formatted_like_java(value: float, expected: str) -> None:
    assert float_text(value) == expected
