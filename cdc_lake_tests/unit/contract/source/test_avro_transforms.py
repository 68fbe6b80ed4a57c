"""Transforms of Avro records: their JSON is that of the same transforms on JSON, and any Avro reader reads them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import fastavro
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cdc_lake.contract.objects import avro_container
from cdc_lake.contract.schema import record_text
from cdc_lake.contract.schema.transforms import TableTransforms
from cdc_lake.contract.source.avro_records import AvroDecoder, UndecodableError
from cdc_lake.contract.source.avro_transforms import AvroTransform
from cdc_lake_tests.helpers.avro import SCHEMA_ID, MemoryRegistry, framed, record

INT16 = {"type": "int", "connect.type": "int16"}
SCHEMA = record(
    "Value",
    ("id", "int"),
    ("small", ["null", INT16]),
    ("big", ["null", "long"]),
    ("flag", ["null", "boolean"]),
    ("text", ["null", "string"]),
    ("real", ["null", "float"]),
    ("raw", ["null", "bytes"]),
    ("tags", ["null", {"type": "array", "items": ["null", "string"]}]),
    ("__lsn", ["null", "long"]),
)
INT_32, INT_64 = st.integers(-(2**31), 2**31 - 1), st.integers(-(2**63), 2**63 - 1)
VALUES = st.fixed_dictionaries(
    {
        "id": INT_32,
        "small": st.none() | st.integers(-(2**15), 2**15 - 1),
        "big": st.none() | INT_64,
        "flag": st.none() | st.booleans(),
        "text": st.none() | st.text(),
        "real": st.none() | st.floats(width=32),
        "raw": st.none() | st.binary(max_size=5),
        "tags": st.none() | st.lists(st.none() | st.text(), max_size=3),
        "__lsn": st.none() | INT_64,
    }
)
CHANGES = st.builds(
    TableTransforms,
    renamed=st.fixed_dictionaries({}, optional={"text": st.just("label"), "id": st.just("number"), "no": st.just("x")}),
    inserted=st.fixed_dictionaries({}, optional={"environment": st.text(), "label": st.just("as text")}),
    cast=st.fixed_dictionaries(
        {},
        optional={
            "id": st.sampled_from(["int64", "float64", "string"]),
            "small": st.sampled_from(["int64", "float64", "string"]),
            "big": st.just("string"),
            "flag": st.just("string"),
            "text": st.sampled_from(["int32", "string"]),
            "real": st.just("string"),
        },
    ),
)


def changed(schema: dict[str, Any], value: Mapping[str, Any], changes: TableTransforms) -> tuple[bytes, bytes]:
    """Return an object with the changed record, and the record's JSON with the same changes."""
    found = AvroDecoder(MemoryRegistry({SCHEMA_ID: schema})).decode(framed(schema, value))
    body = avro_container.join([AvroTransform.of(found.schema, changes, "schema 7").apply(found)])
    return body, record_text.landed(found.json.decode(), changes).encode()


@given(VALUES, CHANGES)
def test_avro_and_json_have_the_same_values_after_the_same_transforms(
    value: dict[str, Any], changes: TableTransforms
) -> None:
    body, expected = changed(SCHEMA, value, changes)
    [found] = avro_container.values(body)
    assert found == expected
    [read] = fastavro.reader(BytesIO(body))
    assert list(read) == list(json.loads(expected)), "the file's schema has the changed fields"  # type: ignore[arg-type,call-overload]


def test_a_transform_can_move_from_the_source_to_landing() -> None:
    changes = TableTransforms(renamed={"text": "label"}, inserted={"environment": "test"}, cast={"big": "string"})
    before = record("Value", ("id", "int"), ("big", ["null", "string"]), ("label", ["null", "string"]))
    value = {"id": 1, "big": "7", "label": "a"}
    body, _ = changed(before, value, changes)
    assert [json.loads(each) for each in avro_container.values(body)] == [value | {"environment": "test"}]


@pytest.mark.parametrize(
    ("schema", "changes", "message"),
    [
        ('"string"', TableTransforms(inserted={"a": "b"}), "schema 7 is not a record schema"),
        (
            json.dumps(record("Value", ("a", "int"), ("b", "int"))),
            TableTransforms(renamed={"a": "b"}),
            "the transforms of landing give schema 7 two fields b",
        ),
    ],
)
def test_a_schema_that_cannot_be_changed_is_rejected(schema: str, changes: TableTransforms, message: str) -> None:
    with pytest.raises(UndecodableError, match=message):
        AvroTransform.of(schema, changes, "schema 7")
