"""Decide which changes of a column's type keep all stored values, so that older and newer records parse alike."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cdc_lake.contract.schema import column_types

if TYPE_CHECKING:
    from cdc_lake.contract.schema.captured_schema import Column

# ALTER TYPE from the left to a type on the right keeps all values, and older and newer records parse alike.
# Lengths and precisions are compared separately. real to double precision is not listed: PostgreSQL converts 0.1 to
# 0.10000000149011612, and a replay of old records would write 0.1 again. numeric to text is not listed: records contain
# 0.00000015 as 1.5E-7, which is not the text that PostgreSQL stores.
_INTEGERS = ("smallint", "integer", "bigint")
_DIGITS = {"smallint": 5, "integer": 10, "bigint": 19}
_WIDENINGS = {
    "smallint": {"integer", "bigint", "numeric", "real", "double precision", "text", "character varying"},
    "integer": {"bigint", "numeric", "double precision", "text", "character varying"},
    "bigint": {"numeric", "text", "character varying"},
    "numeric": {"numeric"},
    "boolean": {"text"},
    "character varying": {"character varying", "text", "citext"},
    "text": {"citext"},
    "citext": {"text"},
    "uuid": {"text"},
    "jsonb": {"text", "json"},
    "json": {"text"},
    "xml": {"text"},
    "timestamp without time zone": {"timestamp without time zone"},
    "timestamp with time zone": {"timestamp with time zone"},
    "time without time zone": {"time without time zone"},
    "time with time zone": {"time with time zone"},
}


def is_widening(old: Column, new: Column) -> bool:
    """Return whether the new column holds every value of the old one, and parses it from the same text in a record."""
    if (old.type, old.kind) == (new.type, new.kind):
        return True
    if old.type.endswith("[]") or new.type.endswith("[]"):
        return _element_widens(old, new)
    if old.kind == "enum":
        return new.kind == "enum" or new.base == "text"
    return new.kind == old.kind == "base" and new.base in _WIDENINGS.get(old.base, ()) and _arguments_widen(old, new)


def _arguments_widen(old: Column, new: Column) -> bool:
    if new.base == "numeric":
        return _numeric_widens(old, new)
    return _length_widens(old, new) if new.base in {"character varying", old.base} else True


def _element_widens(old: Column, new: Column) -> bool:
    if not (old.type.endswith("[]") and new.type.endswith("[]")):
        return False
    old_base, new_base = column_types.base(old.type[:-2]), column_types.base(new.type[:-2])
    return old_base in _INTEGERS and new_base in _INTEGERS and _INTEGERS.index(old_base) <= _INTEGERS.index(new_base)


def _numeric_widens(old: Column, new: Column) -> bool:
    if not new.arguments:
        return True
    precision, scale = (*new.arguments, 0)[:2]
    if old.base in _DIGITS:
        # The lake stores such a numeric as text with `scale` decimals, which the stored integers do not have.
        return new.lake_type != "string" and precision - scale >= _DIGITS[old.base]
    if not old.arguments:
        return False
    before_precision, before_scale = (*old.arguments, 0)[:2]
    if "string" in {old.lake_type, new.lake_type} and scale != before_scale:
        return False
    return scale >= before_scale and precision - scale >= before_precision - before_scale


def _length_widens(old: Column, new: Column) -> bool:
    """Return whether the length or precision does not decrease and, for times, Debezium's unit stays the same.

    Debezium sends timestamps and times without time zone in milliseconds up to precision 3, else in microseconds.
    """
    if new.base == "character varying":
        needed = 0 if old.base == new.base else _DIGITS.get(old.base, 0) + 1  # digits and sign of an integer
        return not new.arguments or (
            new.arguments[0] >= (old.arguments[0] if old.arguments and old.base == new.base else needed)
            and (old.base != new.base or bool(old.arguments))
        )
    before, after = (column.arguments[0] if column.arguments else 6 for column in (old, new))
    has_unit = old.base in {"timestamp without time zone", "time without time zone"}
    return after >= before and not (has_unit and (before <= 3) != (after <= 3))
