"""Converts Trino's columns to Athena's ColumnInfo, and Trino's values to the text of a cell in Athena's results."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

Value = None | bool | int | float | str | list["Value"] | dict[str, "Value"]
"""A value in Trino's JSON."""

# Precision and scale that Athena reports for types without parameters.
_SIZES = {
    "varchar": (2147483647, 0),
    "tinyint": (3, 0),
    "smallint": (5, 0),
    "integer": (10, 0),
    "bigint": (19, 0),
    "float": (17, 0),
    "double": (17, 0),
    "timestamp": (3, 0),
    "timestamp with time zone": (3, 0),
    "varbinary": (1073741824, 0),
}


@dataclass(frozen=True)
class Column:
    """One column of a result: its name and Trino's type signature."""

    name: str
    signature: dict[str, Any]

    def info(self) -> dict[str, Any]:
        """Return Athena's ColumnInfo."""
        raw = self.signature["rawType"]
        # Athena reports type names without a precision, and reports Trino's real as float.
        kind = "float" if raw == "real" else raw
        precision, scale = _SIZES.get(kind, (0, 0))
        numbers = [each["value"] for each in self.signature["arguments"] if each["kind"] == "LONG"]
        if kind == "decimal":
            precision, scale = numbers
        elif kind in {"varchar", "char"} and numbers:
            precision = numbers[0]
        return {
            "CatalogName": "hive",
            "SchemaName": "",
            "TableName": "",
            "Name": self.name,
            "Label": self.name,
            "Type": kind,
            "Precision": precision,
            "Scale": scale,
            "Nullable": "UNKNOWN",
            "CaseSensitive": kind in {"varchar", "char"},
        }

    def text(self, value: Value) -> str | None:
        """Return a value of this column as the text of a cell; None for NULL."""
        return _text(value, self.signature)


def _text(value: Value, signature: dict[str, Any]) -> str | None:
    if value is None:
        return None
    raw = signature["rawType"]
    if raw in _SCALARS:
        return _SCALARS[raw](value)
    if raw not in {"array", "map", "row"}:
        return str(value)
    parts = [each["value"] for each in signature["arguments"]]
    match value:
        case list() if raw == "array":
            return f"[{', '.join(_inner(each, parts[0]) for each in value)}]"
        case dict():
            return "{" + ", ".join(f"{key}={_inner(each, parts[1])}" for key, each in value.items()) + "}"
        case list():
            fields = zip((_field_name(part, i) for i, part in enumerate(parts)), value, parts, strict=True)
            return "{" + ", ".join(f"{n}={_inner(v, p['typeSignature'])}" for n, v, p in fields) + "}"
    raise TypeError(f"Cannot convert a value of type {raw}: Trino sent {value!r} instead of a JSON list or object.")


def _inner(value: Value, signature: dict[str, Any]) -> str:
    text = _text(value, signature)
    return "null" if text is None else text


def _field_name(part: dict[str, Any], index: int) -> str:
    name = part.get("fieldName")
    return name["name"] if name else f"field{index}"


def float_text(value: float) -> str:
    """Return a double as Athena and Java print it: 1.0, 1.0E7, 1.0E-4, NaN, -Infinity."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value) if "e" not in repr(value) else f"{Decimal(repr(value)):f}"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    significant = "".join(map(str, digits)).rstrip("0") or "0"
    power = int(exponent) + len(digits) - 1
    return f"{'-' if sign else ''}{significant[0]}.{significant[1:] or '0'}E{power}"


_SCALARS: dict[str, Callable[[Any], str]] = {
    "boolean": lambda value: "true" if value else "false",
    "double": lambda value: float_text(float(value)),
    "real": lambda value: float_text(float(value)),
    "varbinary": lambda value: base64.b64decode(value).hex(" "),
}
