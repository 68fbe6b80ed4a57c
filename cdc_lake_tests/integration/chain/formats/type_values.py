"""Values of every supported type: as SQL at the source, and as the lake must store them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

TYPES_SQL = """
create type mood as enum ('sad', 'ok');
create domain price as numeric(6,2);
create domain pieces as int check (value > 0);
create domain ints as int[];
create domain dmood as mood;
"""


@dataclass(frozen=True)
class Case:
    """A column's type, a value in SQL, and the lake's value; `...` if the record is a dead letter."""

    type: str
    sql: str
    lake: Any


_BC = -63_517_824_000_000_000
_LONG = "ß🦆\\\"'\t\n\x01\x7f\u2028" * 100_000

CASES = (
    Case("smallint", "-32768", -32768),
    Case("integer", "2147483647", 2147483647),
    Case("bigint", "-9223372036854775808", -(2**63)),
    Case("oid", "4294967295", 4294967295),
    Case("real", "0.1", 0.10000000149011612),
    Case("real", "'-Infinity'", float("-inf")),
    Case("double precision", "1e-300", 1e-300),
    Case("double precision", "'NaN'", float("nan")),
    Case("numeric(6,2)", "'-1234.50'", Decimal("-1234.50")),
    Case("numeric(6,2)", "'NaN'", ...),
    Case(
        "numeric(38,10)",
        "'1234567890123456789012345678.0123456789'",
        Decimal("1234567890123456789012345678.0123456789"),
    ),
    Case(
        "numeric(45,5)",
        "'1234567890123456789012345678901234567890.12345'",
        "1234567890123456789012345678901234567890.12345",
    ),
    Case("numeric", "'0.00000015'", "0.00000015"),
    Case("numeric", "'1e40'", "1" + "0" * 40),
    Case("numeric", "'NaN'", "NaN"),
    Case("numeric", "'Infinity'", "Infinity"),
    Case("money", "'-1234.05'", Decimal("-1234.05")),
    Case("boolean", "false", False),
    Case("text", "''", ""),
    Case("text", "%(long)s", _LONG),
    Case("character varying(20)", "'ß→🦆'", "ß→🦆"),
    Case("character(5)", "'ab'", "ab   "),
    Case("name", "'nam'", "nam"),
    Case('"char"', "'x'", "x"),
    Case("uuid", "'6f1c1f1e-0000-4000-8000-000000000001'", "6f1c1f1e-0000-4000-8000-000000000001"),
    Case("json", """'{"b":  1, "a":2, "b":3}'""", '{"b":  1, "a":2, "b":3}'),
    Case("jsonb", """'{"b": 1, "a": 1.50, "u": "ß🦆"}'""", '{"a": 1.50, "b": 1, "u": "ß🦆"}'),
    Case("bytea", r"'\x00ff80'", b"\x00\xff\x80"),
    Case("bytea", "''", b""),
    Case("bit(1)", "B'1'", True),
    Case("bit(10)", "B'0000000000'", "0000000000"),
    Case("bit(10)", "B'1010000001'", "1010000001"),
    Case("date", "'2024-02-29'", 19782),
    Case("date", "'0001-01-01'", -719162),
    Case("date", "'12345-01-01'", 3789391),
    Case("date", "'infinity'", ...),
    Case("date", "'-infinity'", ...),
    Case("time", "'23:59:59.999999'", 86_399_999_999),
    Case("time", "'24:00:00'", 86_400_000_000),
    Case("time(3)", "'23:59:59.999'", 86_399_999_000),
    Case("time with time zone", "'23:59:59.999999+05:30'", "18:29:59.999999Z"),
    Case("timestamp", "'2024-02-29 23:59:59.123456'", 1_709_251_199_123_456),
    Case("timestamp", "'0044-03-15 00:00:00 BC'", _BC),
    Case("timestamp", "'1500-01-01'", -14_831_769_600_000_000),
    Case("timestamp", "'12345-01-01'", 327_403_382_400_000_000),
    Case("timestamp", "'infinity'", ...),
    Case("timestamp(3)", "'2024-02-29 23:59:59.123'", 1_709_251_199_123_000),
    Case("timestamp(3)", "'0044-03-15 00:00:00 BC'", _BC),
    Case("timestamp(3)", "'-infinity'", ...),
    Case("timestamp(0)", "'2024-02-29 23:59:59'", 1_709_251_199_000_000),
    Case("timestamptz", "'2024-02-29 23:59:59.123456+05:30'", 1_709_231_399_123_456),
    Case("timestamptz", "'0044-03-15 00:00:00+00 BC'", _BC),
    Case("timestamptz", "'12345-01-01 00:00:00+00'", 327_403_382_400_000_000),
    Case("timestamptz", "'infinity'", ...),
    Case("timestamptz(3)", "'-infinity'", ...),
    Case("interval", "'1 year 2 mons 3 days 04:05:06.789'", "P1Y2M3DT4H5M6.789S"),
    Case("inet", "'10.0.0.0/8'", "10.0.0.0/8"),
    Case("cidr", "'2001:db8::/32'", "2001:db8::/32"),
    Case("macaddr", "'08:00:2b:01:02:03'", "08:00:2b:01:02:03"),
    Case("macaddr8", "'08:00:2b:01:02:03:04:05'", "08:00:2b:01:02:03:04:05"),
    Case("int4range", "'[1,5)'", "[1,5)"),
    Case("int8range", "'(1,5000000000]'", "[2,5000000001)"),
    Case("tsrange", "'[2024-01-01 00:00,2024-01-02 12:30)'", '["2024-01-01 00:00:00","2024-01-02 12:30:00")'),
    Case("numrange", "'[1.5,2.5)'", "[1.5,2.5)"),
    Case("tstzrange", "'[2024-01-01 00:00+00,)'", '["2024-01-01 00:00:00+00",)'),
    Case("daterange", "'[2024-01-01,2024-02-01)'", "[2024-01-01,2024-02-01)"),
    Case("tsvector", "'a:1 b:2'", "'a':1 'b':2"),
    Case("mood", "'sad'", "sad"),
    Case("dmood", "'ok'", "ok"),
    Case("price", "1.50", Decimal("1.50")),
    Case("pieces", "5", 5),
    Case("ints", "'{1,NULL}'", "[1,null]"),
    Case("int[]", "'{1,NULL,3}'", "[1,null,3]"),
    Case("int[]", "'{}'", "[]"),
    Case("int[]", "'{{1,2},{3,4}}'", ...),
    Case("int[]", "'{NULL}'", ...),
    Case("bigint[]", "'{9223372036854775807}'", "[9223372036854775807]"),
    Case("text[]", """array['a', null, '', '"q\\', 'ß🦆', 'NULL']""", '["a",null,"","\\"q\\\\","ß🦆","NULL"]'),
    Case("text[]", "'{{a,b},{c,d}}'", ...),
    Case("boolean[]", "'{t,NULL}'", "[true,null]"),
    Case("double precision[]", "'{0.1,NaN}'", '[0.1,"NaN"]'),
    Case("uuid[]", "'{6f1c1f1e-0000-4000-8000-000000000001}'", '["6f1c1f1e-0000-4000-8000-000000000001"]'),
    Case("timestamptz[]", "'{2024-01-01 00:00:00+00}'", '["2024-01-01T00:00:00.000000Z"]'),
    Case("mood[]", "'{sad,ok}'", '["sad","ok"]'),
    Case("jsonb[]", """array['{"a": 1}'::jsonb]""", '["{\\"a\\": 1}"]'),
)
LONG = {"long": _LONG}

OMITTED = (
    ("numeric(5,-3)", "12000"),
    ("bit varying(9)", "B'101'"),
    ("int generated always as (id * 2) virtual", None),
    ("point", "'(1,2)'"),
    ("polygon", "'((0,0),(1,1),(2,0))'"),
    ("pg_lsn", "'16/B374D848'"),
    ("int4multirange", "'{[1,5)}'"),
    ("int generated always as (id * 3) stored", None),
    ("numeric(6,2)[]", "'{1.5,NaN}'"),
    ("date[]", "'{2024-01-01}'"),
    ("time with time zone[]", "'{01:02:03+00}'"),
    ("bytea[]", r"""'{"\\x00ff"}'"""),
    ("pieces[]", "'{5}'"),
)
"""Types of columns that cannot be captured, with a value in SQL; None for generated columns."""


def same(left: Any, right: Any) -> bool:  # noqa: ANN401 - any value of any type
    """Return whether two values are equal; NaN equals NaN."""
    if isinstance(left, bytearray):
        left = bytes(left)
    both_nan = isinstance(left, float) and isinstance(right, float) and math.isnan(left) and math.isnan(right)
    return both_nan or (left == right and type(left) is type(right))
