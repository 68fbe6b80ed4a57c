"""Avro records become the JSON of Debezium's JSON converter, or the reason why they are unreadable."""

from __future__ import annotations

import base64
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lake.contract.source.avro_records import AvroDecoder, UndecodableError, ValueDecoder
from cdc_lake_tests.helpers.avro import SCHEMA_ID, MemoryRegistry, framed, record

POINT = record("Point", ("x", "double"), ("wkb", ["null", "bytes"]))
SCHEMA = record(
    "Value",
    ("id", "int"),
    ("at", ["null", {"type": "long", "connect.version": 1, "connect.name": "io.debezium.time.MicroTimestamp"}]),
    ("small", ["null", {"type": "int", "connect.type": "int16"}]),
    ("name", ["null", "string"]),
    ("raw", ["null", "bytes"]),
    ("real", ["null", "float"]),
    ("wide", ["null", "double"]),
    ("reals", ["null", {"type": "array", "items": ["null", "float"]}]),
    ("tags", ["null", {"type": "map", "values": ["null", "string"]}]),
    ("first", ["null", POINT]),
    ("second", ["null", "shop.public.Point"]),
    ("kind", ["null", {"type": "enum", "name": "Kind", "symbols": ["a", "b"]}]),
    ("flag", "boolean"),
)
NOTHING = {field["name"]: None for field in SCHEMA["fields"]} | {"id": 1, "flag": True}  # type: ignore[attr-defined]


def decoded(value: dict[str, object]) -> object:
    """Return the JSON value that a record with these fields is decoded to, without the fields that are NULL."""
    found = AvroDecoder(MemoryRegistry({SCHEMA_ID: SCHEMA})).decode(framed(SCHEMA, NOTHING | value))
    members: dict[str, object] = json.loads(found.json)
    assert list(members) == list(NOTHING), "the fields keep their order"
    return {name: each for name, each in members.items() if each is not None and name not in {"id", "flag"}}


@pytest.mark.parametrize(
    ("given_", "expected"),
    [
        ({}, {}),
        ({"at": 1_700_000_000_000_001, "small": -3}, {"at": 1_700_000_000_000_001, "small": -3}),
        ({"name": 'é"\n\u2028😀'}, {"name": 'é"\n\u2028😀'}),
        ({"raw": b"\x00\xff"}, {"raw": "AP8="}),
        ({"real": 0.1, "wide": 0.1}, {"real": 0.1, "wide": 0.1}),
        ({"real": float("nan"), "wide": float("-inf")}, {"real": "NaN", "wide": "-Infinity"}),
        ({"reals": [0.1, None, float("inf")]}, {"reals": [0.1, None, "Infinity"]}),
        ({"tags": {"a": None, "b": "c"}}, {"tags": {"a": None, "b": "c"}}),
        ({"first": {"x": 1.5, "wkb": b"ab"}}, {"first": {"x": 1.5, "wkb": "YWI="}}),
        ({"second": {"x": float("nan"), "wkb": None}}, {"second": {"x": "NaN", "wkb": None}}),
        ({"kind": "b"}, {"kind": "b"}),
    ],
)
def test_values_are_written_as_the_json_converter_writes_them(
    given_: dict[str, object], expected: dict[str, object]
) -> None:
    assert decoded(given_) == expected


@given(
    st.fixed_dictionaries(
        {
            "name": st.none() | st.text(st.characters(exclude_categories=["Cs"])),
            "raw": st.none() | st.binary(),
            "real": st.none() | st.floats(width=32, allow_nan=False, allow_infinity=False),
            "wide": st.none() | st.floats(allow_nan=False, allow_infinity=False),
            "at": st.none() | st.integers(-(2**63), 2**63 - 1),
        }
    )
)
def test_no_value_is_changed(value: dict[str, object]) -> None:
    found = decoded(value)
    assert isinstance(found, dict)
    if isinstance(value["raw"], bytes):
        assert base64.b64decode(found.pop("raw")) == value["raw"]
    if value["real"] is not None:
        assert np.float32(found.pop("real")) == np.float32(str(value["real"]))
    assert found == {name: each for name, each in value.items() if each is not None and name not in {"raw", "real"}}


@pytest.mark.parametrize(
    ("record_bytes", "reason"),
    [
        (b"", "is not Avro in a registry's wire format"),
        (b'{"id": 1}', "is not Avro in a registry's wire format"),
        (b"\x00\x00\x00\x00\x07", "is not Avro in a registry's wire format"),
        (b"\x00\x00\x00\x00\x09x", "^the registry has no schema 9, which the record names$"),
        (framed(SCHEMA, NOTHING)[:-1], "^the record's bytes are not a value of schema 7: \\S"),
        (framed(SCHEMA, NOTHING) + b"x", "^after a value of schema 7, the record has 1 more byte$"),
        (b"\x00\x00\x00\x00\x07" + b"\xff" * 40, "^the record's bytes are not a value of schema 7: \\S"),
    ],
)
def test_bytes_that_are_no_record_are_rejected_with_a_reason(record_bytes: bytes, reason: str) -> None:
    with pytest.raises(UndecodableError, match=reason):
        AvroDecoder(MemoryRegistry({SCHEMA_ID: SCHEMA})).decode(record_bytes)


@given(st.binary(max_size=60))
def test_any_bytes_are_decoded_or_rejected(tail: bytes) -> None:
    decoder = AvroDecoder(MemoryRegistry({SCHEMA_ID: SCHEMA}))
    try:
        json.loads(decoder.decode(b"\x00\x00\x00\x00\x07" + tail).json)
    except UndecodableError:
        return


def test_the_registry_is_read_once_for_each_schema() -> None:
    registry = MemoryRegistry({SCHEMA_ID: SCHEMA, 8: SCHEMA})
    decoder = AvroDecoder(registry)
    for schema_id in (SCHEMA_ID, 8, SCHEMA_ID, 8):
        assert decoder.decode(framed(SCHEMA, NOTHING, schema_id)).schema_id == schema_id
    assert registry.requested_ids == [SCHEMA_ID, 8]


@pytest.mark.parametrize(
    "text", ["{", '{"type": "nothing"}', '["int", "string"]', '{"type": "int", "logicalType": "date"}']
)
def test_a_schema_that_cannot_be_used_is_named(text: str) -> None:
    with pytest.raises(UndecodableError, match=r"^the record's schema 5 is not supported: "):
        ValueDecoder.of(text, "schema 5")
