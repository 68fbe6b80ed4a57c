"""Parsing a record: the texts of its fields, and every reason why a record is unreadable."""

from __future__ import annotations

import json
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from cdc_lake.contract.schema.captured_schema import EVENT_FIELDS, Column, TableSchema
from cdc_lake.jobs.apply.record_fields import TEXTS, UNREADABLE, RecordParser
from cdc_lake_tests.faults.jobs.bad_records import AT_READING, good
from cdc_lake_tests.integration.jobs.change_records import COLUMNS

SCHEMA = TableSchema(version=1, table="public.orders", columns=COLUMNS, key=("id",))
PARSER = RecordParser.of([SCHEMA])
EVENT = dict.fromkeys(EVENT_FIELDS)
STRUCTURE = ("JSON object", "UTF-8", "fields", "twice")
"""Parts of the reasons that do not depend on a field's value."""
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def parsed(value: bytes | None, parser: RecordParser = PARSER, epoch: int = 0) -> tuple[dict[str, Any], str | None]:
    """Return the texts of a record by field, and why it is unreadable."""
    batch = pa.RecordBatch.from_pydict(
        {"epoch": pa.array([epoch], pa.int32()), "value": pa.array([value], pa.binary())}
    )
    [row] = parser.with_parsed(batch).to_pylist()
    return row[TEXTS], row[UNREADABLE]


@pytest.mark.parametrize(
    ("value", "reason"), [each for each in AT_READING if any(part in each[1] for part in STRUCTURE)]
)
def test_a_record_with_another_structure_has_a_reason(value: bytes, reason: str) -> None:
    found = parsed(value)[1]
    assert found is not None
    assert reason in found


@pytest.mark.parametrize("name", ["note", "qty"])
@given(value=JSON)
def test_a_text_is_the_value_and_everything_else_its_json(name: str, value: Any) -> None:  # noqa: ANN401 - any value
    texts, unreadable = parsed(json.dumps({"id": 1, "note": None, "qty": None, **EVENT, name: value}).encode())
    lone = isinstance(value, str) and any(0xD800 <= ord(each) < 0xE000 for each in value)
    assert (unreadable is None) != lone
    if value is None or isinstance(value, str):
        assert texts[name] == (None if lone else value)
    else:
        assert json.loads(texts[name]) == value


@pytest.mark.parametrize("number", ["1.50", "1e400", "-0.0", "0.10000000000000000001", "9" * 50, "1E-7"])
def test_a_number_keeps_all_its_digits(number: str) -> None:
    value = good(1, 1).replace(b'"qty": 1', f'"qty": {number}, "more": [{number}]'.encode())
    parser = RecordParser.of([SCHEMA.model_copy(update={"columns": (*COLUMNS, Column(name="more", type="text"))})])
    texts, unreadable = parsed(value, parser)
    assert (texts["qty"], texts["more"], unreadable) == (number, f"[{number}]", None)


@given(value=st.binary() | JSON.map(lambda value: json.dumps(value).encode()))
def test_no_bytes_stop_a_batch(value: bytes) -> None:
    assert parsed(value)[1] is not None
    assert parsed(None)[1] is not None


VALUES = (
    st.from_regex(r"-?(0|[1-9][0-9]{0,22})(\.[0-9]{1,20})?([eE][+-]?[0-9]{1,3})?", fullmatch=True)
    | JSON.map(lambda value: json.dumps(value, ensure_ascii=False, separators=(",", ":")))
    | st.sampled_from(
        (r'"\u00e9"', r'"\/"', r'"\ud83d"', r'"\ud83d\ude00"', r'"\u001f\n"', "[1 ]", "{}", "tru", '{"a":1,"a":1}')
    )
)


@given(qty=VALUES, note=VALUES, twice=st.booleans(), blanks=st.sampled_from(("", " ", "\n")))
@example(qty="-0", note="18446744073709551616", twice=False, blanks="")
@example(qty="1.0", note="1.10", twice=False, blanks="")
@example(qty="1", note='"x"', twice=True, blanks="")
def test_both_parsers_have_the_same_result(qty: str, note: str, twice: bool, blanks: str) -> None:
    """For any record: orjson's objects are used only if they are those of the exact parser."""
    event = "".join(f',"{name}":null' for name in EVENT)
    second = ',"qty":1' if twice else ""
    text = f'{blanks}{{"id":1,"note":{note},"qty":{qty}{event}{second}}}'
    value = text.encode("utf-8", "surrogatepass")
    assert PARSER._parse(0, value) == PARSER._parse_exactly(0, value)


def test_a_record_as_debezium_writes_it_needs_one_parser(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RecordParser, "_parse_exactly", None)
    value = json.dumps(json.loads(good(1, 1, note="\N{GRINNING FACE} é")), ensure_ascii=False, separators=(",", ":"))
    assert parsed(value.encode())[0]["note"] == "\N{GRINNING FACE} é"


def test_half_of_a_surrogate_pair_is_not_replaced() -> None:
    assert parsed(good(1, 1, note="x").replace(b'"x"', b'"\\ud83d"'))[1] is not None
    whole = parsed(good(1, 1, note="x").replace(b'"x"', b'"\\ud83d\\ude00"'))
    assert (whole[0]["note"], whole[1]) == ("\N{GRINNING FACE}", None)


def test_a_nested_value_of_any_depth_is_read_or_refused() -> None:
    for depth in (10, 300, 500, 900, 1500):
        value = good(1, 1, note="x").replace(b'"x"', b"[" * depth + b"]" * depth)
        texts, unreadable = parsed(value)
        assert texts["note"] == "[" * depth + "]" * depth if unreadable is None else "JSON object" in unreadable
