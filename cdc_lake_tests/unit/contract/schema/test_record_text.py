"""Records' texts: single fields change, and all others keep their text."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lake.contract.schema import record_text
from cdc_lake.contract.schema.captured_schema import Column
from cdc_lake.contract.schema.transforms import Masking, TableTransforms, hashed

SALT = "sixteen-letters-0"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(), JSON, max_size=6), st.booleans())
def test_members_are_those_of_the_object(fields: dict[str, object], ascii_only: bool) -> None:
    text = json.dumps(fields, ensure_ascii=ascii_only)
    found = record_text.members(text)
    assert [name for name, _ in found] == list(fields)
    assert [json.loads(value) for _, value in found] == list(fields.values())


@pytest.mark.parametrize(
    "text",
    ["", "1", "[1]", "{", '{"a"}', '{"a":1', '{"a":1,}', '{"a":1}{}', "{a:1}", '{"a":1 "b":2}', '{"a":x}', "null"],
)
def test_a_text_that_is_no_object_is_rejected(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        record_text.members(text)


def test_landing_casts_renames_and_inserts_and_keeps_the_other_texts() -> None:
    changes = TableTransforms(
        renamed={"district": "state", "n": "number"},
        inserted={"environment": 'it\'s "ü"'},
        cast={
            "n": "string",
            "flag": "string",
            "small": "float64",
            "big": "int64",
            "gone": "string",
            "other": "float64",
        },
    )
    record = (
        ' { "district" : "d\\u00e9\\n" , "n":-7, "flag":true,"small":3,"big":5,"other":1.50,"e":1.50E-7,'
        '"none":null,"n2":null, "list":[1, {"n": 2}],"n":null }'
    )
    once = record_text.landed(record, changes)
    assert record_text.landed(once, changes) == once, "a transform can move from the source to landing"
    assert once == (
        '{"state":"d\\u00e9\\n","number":"-7","flag":"true","small":3.0,"big":5,"other":1.50,"e":1.50E-7,'
        '"none":null,"n2":null,"list":[1, {"n": 2}],"number":null,"environment":"it\'s \\"ü\\""}'
    )


def test_only_hashed_columns_are_hashed() -> None:
    columns = [
        Column(name="email", type="text", masked=Masking(algorithm="SHA-256")),
        Column(name="Login", type="character varying(12)", masked=Masking(algorithm="SHA-512")),
        Column(name="phone", type="text", masked=Masking(asterisks=3)),
        Column(name="none", type="text", masked=Masking(algorithm="SHA-256")),
        Column(name="id", type="integer"),
    ]
    record = {"id": 1, "email": "ü@x", "Login": "me", "phone": "***", "none": None}
    found = json.loads(record_text.with_hashes(json.dumps(record), columns, SALT))
    assert found == record | {
        "email": hashed("ü@x", SALT, "SHA-256"),
        "Login": hashed("me", SALT, "SHA-512", 12),
    }
    assert len(found["Login"]) == 12
