"""Which changes of a type keep every value, so that they need no new snapshot."""

from __future__ import annotations

import pytest

from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.contract.schema.widening import is_widening

ALLOWED = {
    "smallint": "integer bigint numeric numeric(10,2) numeric(10,4) numeric(18,0) numeric(19,0) numeric(38,0) "
    "numeric(5,0) real double-precision text varchar varchar(6) varchar(11) varchar(20)",
    "integer": "bigint numeric numeric(18,0) numeric(19,0) numeric(38,0) double-precision text varchar varchar(11) "
    "varchar(20)",
    "bigint": "numeric numeric(19,0) numeric(38,0) text varchar varchar(20)",
    "numeric": "",
    "numeric(10,2)": "numeric",
    "numeric(10,4)": "numeric",
    "numeric(4,2)": "numeric numeric(10,2) numeric(10,4)",
    "numeric(5,0)": "numeric numeric(10,2) numeric(10,4) numeric(18,0) numeric(19,0) numeric(38,0)",
    "numeric(18,0)": "numeric numeric(19,0) numeric(38,0)",
    "numeric(19,0)": "numeric numeric(38,0)",
    "numeric(38,0)": "numeric",
    "real": "",
    "double-precision": "",
    "boolean": "text",
    "text": "citext",
    "citext": "text",
    "varchar": "text citext",
    "varchar(6)": "text citext varchar varchar(11) varchar(20)",
    "varchar(11)": "text citext varchar varchar(20)",
    "varchar(20)": "text citext varchar",
    "character(5)": "",
    "uuid": "text",
    "json": "text",
    "jsonb": "text json",
    "xml": "text",
    "bytea": "",
    "date": "",
    "timestamp(3)-without-time-zone": "",
    "timestamp-without-time-zone": "",
    "timestamp(3)-with-time-zone": "timestamp-with-time-zone",
    "timestamp-with-time-zone": "",
    "time(3)-without-time-zone": "",
    "time-without-time-zone": "",
    "interval": "",
    "inet": "",
    "money": "",
    "smallint[]": "integer[] bigint[]",
    "integer[]": "bigint[]",
    "bigint[]": "",
    "text[]": "",
}
"""The types that each type may change to without a new snapshot, with `-` for blanks and varchar for its long name."""
EXTREMES = {"smallint": 2**15, "integer": 2**31, "bigint": 2**63}


def column(name: str) -> Column:
    """Return a column of a type as ALLOWED writes it."""
    return Column(name="c", type=name.replace("-", " ").replace("varchar", "character varying"))


def test_each_pair_of_types() -> None:
    found = {old: {new for new in ALLOWED if is_widening(column(old), column(new))} for old in ALLOWED}
    assert found == {old: {old, *allowed.split()} for old, allowed in ALLOWED.items()}


@pytest.mark.parametrize("old", EXTREMES)
def test_extreme_integers_fit_into_each_allowed_type(old: str) -> None:
    value = -EXTREMES[old]
    for new in ALLOWED[old].split():
        kind, _, given = new.partition("(")
        sizes = [int(each) for each in given.rstrip(")").split(",") if each]
        if kind in EXTREMES:
            assert EXTREMES[kind] >= -value
        elif kind == "real":
            assert abs(value) <= 2**24, "a real has 24 bits"
        elif kind == "double-precision":
            assert abs(value) <= 2**53, "a double has 53 bits"
        elif kind == "numeric" and sizes:
            assert len(str(-value)) <= sizes[0] - sizes[1]
        elif kind == "varchar" and sizes:
            assert len(str(value)) <= sizes[0]
        else:
            assert new in {"numeric", "text", "varchar"}


@pytest.mark.parametrize(
    ("old", "new", "widens"),
    [
        ("smallint", "varchar(6)", True),  # -32768
        ("smallint", "varchar(5)", False),
        ("varchar(5)", "varchar(5)", True),
        ("varchar(5)", "varchar(4)", False),
        ("varchar", "varchar(5)", False),
        ("integer[]", "bigint[]", True),
        ("integer[]", "bigint", False),
        ("integer", "bigint[]", False),
        ("numeric(10)", "numeric(10,0)", True),
        ("numeric(10)", "numeric(10,1)", False),
        ("numeric(10)", "numeric(11,1)", True),
        ("bigint", "varchar(20)", True),  # -9223372036854775808
        ("bigint", "varchar(19)", False),
        ("integer[]", "integer[]", True),
        ("bigint[]", "integer[]", False),
        ("integer", "numeric(12,2)", True),
        ("integer", "numeric(11,2)", False),
        ("integer", "numeric(50,2)", False),  # the lake stores it as text
        ("numeric(40,2)", "numeric(50,2)", True),
        ("numeric(40,2)", "numeric(50,4)", False),
        ("numeric(6,2)", "numeric(45,4)", False),
        ("character(5)", "character(6)", False),
        ("timestamp(0) without time zone", "timestamp(3) without time zone", True),
        ("timestamp without time zone", "timestamp(6) without time zone", True),
        ("timestamp without time zone", "timestamp(5) without time zone", False),
        ("timestamp(6) without time zone", "timestamp without time zone", True),
        ("timestamp(2) without time zone", "timestamp(3) without time zone", True),
        ("timestamp(3) without time zone", "timestamp(4) without time zone", False),  # other unit
        ("timestamp(4) without time zone", "timestamp(5) without time zone", True),
        ("timestamp(3) with time zone", "timestamp(4) with time zone", True),  # sent as text
    ],
)
def test_lengths_elements_and_digits_at_their_bounds(old: str, new: str, widens: bool) -> None:
    assert is_widening(column(old), column(new)) is widens


def test_an_enum_may_become_text_but_not_the_reverse() -> None:
    mood = Column(name="c", type="mood", kind="enum")
    assert is_widening(mood, Column(name="c", type="text"))
    assert is_widening(mood, Column(name="c", type="feeling", kind="enum"))
    assert not is_widening(Column(name="c", type="text"), mood)
